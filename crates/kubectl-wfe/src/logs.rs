//! `kubectl wfe logs`: the logs of the pods of one execution, the failed step first.

mod follow;
mod known;
mod read;

use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use kube::api::{Api, DynamicObject, ListParams};
use serde::Serialize;
use wfe_tekton::{Object, PodStep, StepState, made_for_run, steps_of};
use wfe_view::call::within;
use wfe_view::index::Kind;
use wfe_view::source::{PAGE, objects};

use crate::cli::{ClusterArgs, Format, LogsArgs};
use crate::connection::{ANSWERS_WITHIN, Connection};
use crate::execution::{End, full_name, get};
use crate::moment::shown;
use crate::output::{line, output};
use read::{Log, read};

/// How many steps are read at most: one request each.
const MOST_STEPS: usize = 100;
/// The limit of lines that are counted in the log of a step that is not shown.
const COUNTED: u32 = 10_000;

/// The run of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    attempt: u64,
    namespace: String,
    name: String,
}

/// A step of a run, and its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    pod: String,
    step: PodStep,
}

/// The answer. `-o json` shows all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    namespace: Option<String>,
    name: Option<String>,
    /// The attempt and its run, as `namespace/name`. None if there is no run.
    attempt: Option<u64>,
    run: Option<String>,
    /// How the execution ended, if it has.
    end: Option<End>,
    /// Empty if the pods are gone.
    steps: Vec<StepLog>,
    /// How many further steps the run has, that were not read.
    more_steps: usize,
    /// If no pods are left: until when the run was to be kept, by the settings in force.
    kept_until: Option<String>,
}

/// A step with its log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StepLog {
    task: String,
    step: String,
    pod: String,
    container: String,
    state: String,
    exit_code: Option<i64>,
    /// The failed step alone is shown, and this is another one.
    is_left_out: bool,
    /// None if it is left out, or could not be read.
    lines: Option<Vec<String>>,
    /// How many lines it has, if it is left out.
    line_count: Option<usize>,
    /// What the lines lack, or why there are none.
    note: Option<String>,
}

/// Runs the command. Yes: a log was shown.
pub(crate) async fn run(cluster: &ClusterArgs, args: &LogsArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    if args.follow {
        return follow::run(&connection, args).await;
    }
    let object = get(&connection, &args.name).await?;
    let run = chosen(&object, args.attempt)?;
    let mut answer = Answer::of(&object, run.as_ref());
    let told = match &run {
        None => known::without_run(&object, connection.now()),
        Some(run) => match steps_of_run(&connection, run).await? {
            steps if steps.is_empty() => {
                let kept = known::Kept::read(&connection, &args.view, &object).await?;
                answer.kept_until = kept.as_ref().map(|kept| shown(kept.until));
                known::without_pods(&object, run, kept.as_ref(), connection.now())
            }
            steps => {
                answer.fill(&connection, &object, run, steps, args).await?;
                answer.told()
            }
        },
    };
    match args.output {
        Some(Format::Json) => output().json("Logs", &answer)?,
        None => write!(output(), "{told}")?,
    }
    Ok(answer.steps.iter().any(|it| it.lines.is_some()))
}

/// Lists the runs of an execution, each with its attempt, the first one first.
fn runs(object: &DynamicObject) -> Vec<Run> {
    let status = &object.data["status"];
    let run = &status["pipelineRunRef"];
    let Some(namespace) = run["namespace"].as_str() else { return Vec::new() };
    let of = |attempt, name: &str| Run { attempt, namespace: namespace.to_owned(), name: name.to_owned() };
    let attempts = status["attempts"].as_array().into_iter().flatten();
    let named = attempts.filter_map(|it| Some(of(it["attempt"].as_u64()?, it["pipelineRun"].as_str()?)));
    let runs: Vec<Run> = named.collect();
    if runs.is_empty() { run["name"].as_str().map(|name| of(1, name)).into_iter().collect() } else { runs }
}

/// Returns the run of an attempt, or the latest run. None if there is no run.
fn chosen(object: &DynamicObject, attempt: Option<u32>) -> Result<Option<Run>> {
    let mut runs = runs(object);
    let Some(wanted) = attempt else { return Ok(runs.pop()) };
    if let Some(run) = runs.iter().find(|run| run.attempt == u64::from(wanted)) {
        return Ok(Some(run.clone()));
    }
    let there: Vec<String> = runs.iter().map(|run| run.attempt.to_string()).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    bail!("{} has no attempt {wanted} with a run; those with one: {there}", full_name(object))
}

/// Lists the steps of a run, in the order in which their pods were made.
async fn steps_of_run(connection: &Connection, run: &Run) -> Result<Vec<Step>> {
    let pods: Api<DynamicObject> = objects(&connection.client, Kind::Pod, Some(&run.namespace));
    // Tekton's default limit is far below one page of pods.
    let params = ListParams::default().labels(&made_for_run(&run.name)).limit(PAGE);
    let listed = within(ANSWERS_WITHIN, pods.list(&params)).await;
    let mut pods =
        listed.map_err(|error| anyhow!("cannot list the pods of {}: {}", run.name, read::said(&error, run)))?.items;
    pods.sort_by(|a, b| {
        let key =
            |it: &DynamicObject| (it.metadata.creation_timestamp.as_ref().map(|at| at.0), it.metadata.name.clone());
        key(a).cmp(&key(b))
    });
    Ok(pods.iter().flat_map(steps_in).collect())
}

fn steps_in(pod: &DynamicObject) -> Vec<Step> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let steps = steps_of(Object { meta: &pod.metadata, data: &pod.data });
    steps.into_iter().map(|step| Step { pod: name.clone(), step }).collect()
}

/// Returns the place of the failed step: the step that the status names, if the status is about this run; otherwise the
/// first step that failed.
fn failed(object: &DynamicObject, run: &Run, steps: &[Step]) -> Option<usize> {
    let status = &object.data["status"];
    let details = &status["failureDetails"];
    let is_named = |it: &Step| {
        details["failedTaskName"] == *it.step.task
            && details["failedStepName"].as_str().is_some_and(|name| name == it.step.name)
    };
    let is_of_run = status["pipelineRunRef"]["name"] == *run.name;
    // A task that Tekton has retried has several pods, and the status is about the last one.
    let by_status = steps.iter().rposition(is_named).filter(|_| is_of_run);
    by_status.or_else(|| steps.iter().position(|it| it.step.state.failed_with().is_some()))
}

/// Tells how far a step is.
fn state(state: &StepState) -> String {
    match state {
        StepState::Waiting(reason) if reason.is_empty() => "waits".to_owned(),
        StepState::Waiting(reason) => format!("waits, {reason}"),
        StepState::Running => "runs".to_owned(),
        StepState::Ended(0) => "ok".to_owned(),
        StepState::Ended(code) => format!("exit code {code}"),
        StepState::Skipped => "did not run".to_owned(),
    }
}

impl StepLog {
    /// Makes the entry of a step. `log` is None if the step has no log, so none was read.
    fn of(Step { pod, step }: Step, log: Option<Log>, is_shown: bool) -> Self {
        let exit_code = if let StepState::Ended(code) = step.state { Some(code) } else { None };
        let (lines, line_count, note) = match log {
            Some(Log::Lines { lines, .. }) if !is_shown => (None, Some(lines.len()), None),
            Some(Log::Lines { lines, note }) => (Some(lines), None, note),
            Some(Log::None(why)) => (None, None, Some(why)),
            None => (None, None, None),
        };
        Self {
            task: step.task,
            step: step.name,
            pod,
            container: step.container,
            state: state(&step.state),
            exit_code,
            is_left_out: !is_shown,
            lines,
            line_count,
            note,
        }
    }

    /// Returns the prefix of its lines.
    fn prefix(&self) -> String {
        prefix(&self.task, &self.step)
    }

    fn told(&self) -> String {
        let prefix = self.prefix();
        let mut text = String::new();
        for said in self.lines.iter().flatten() {
            let _ = writeln!(text, "{prefix} {}", line(said));
        }
        if let Some(note) = &self.note {
            let _ = writeln!(text, "{prefix} ({})", line(note));
        }
        let _ = writeln!(text, "{prefix} {}", line(&self.state));
        text
    }

    /// Describes in one line a step whose log is left out.
    fn in_short(&self) -> String {
        let count = match self.line_count {
            Some(1) => ", 1 line".to_owned(),
            Some(count) if count >= COUNTED as usize => format!(", {COUNTED} lines or more"),
            Some(count) => format!(", {count} lines"),
            None => String::new(),
        };
        format!("  {} {}{count}\n", self.prefix(), line(&self.state))
    }
}

fn prefix(task: &str, step: &str) -> String {
    format!("[{} : {}]", line(task), line(step))
}

impl Answer {
    /// Makes an answer without steps.
    fn of(object: &DynamicObject, run: Option<&Run>) -> Self {
        Self {
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
            attempt: run.map(|run| run.attempt),
            run: run.map(|run| format!("{}/{}", run.namespace, run.name)),
            end: End::of(object),
            steps: Vec::new(),
            more_steps: 0,
            kept_until: None,
        }
    }

    /// Reads the logs to show, and counts the lines of the others.
    async fn fill(
        &mut self,
        connection: &Connection,
        object: &DynamicObject,
        run: &Run,
        mut steps: Vec<Step>,
        args: &LogsArgs,
    ) -> Result<()> {
        let alone = failed(object, run, &steps).filter(|_| !args.all);
        if let Some(place) = alone {
            let failed = steps.remove(place);
            steps.insert(0, failed);
        }
        self.more_steps = steps.len().saturating_sub(MOST_STEPS);
        for (place, step) in steps.into_iter().take(MOST_STEPS).enumerate() {
            let is_shown = alone.is_none() || place == 0;
            let tail = if is_shown { args.tail } else { COUNTED };
            let log = if step.step.state.has_log() { Some(read(connection, run, &step, tail).await?) } else { None };
            self.steps.push(StepLog::of(step, log, is_shown));
        }
        Ok(())
    }

    fn told(&self) -> String {
        let (left_out, shown): (Vec<_>, Vec<_>) = self.steps.iter().partition(|it| it.is_left_out);
        let mut text: String = shown.into_iter().map(StepLog::told).collect();
        if !left_out.is_empty() {
            text += "left out, -a shows them:\n";
            text.extend(left_out.into_iter().map(StepLog::in_short));
        }
        if self.more_steps > 0 {
            let _ = writeln!(text, "{} more steps: kubectl logs shows each, by its pod", self.more_steps);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::execution::tests::execution;

    fn step(task: &str, name: &str, state: StepState) -> Step {
        let (task, name, container) = (task.to_owned(), name.to_owned(), format!("step-{name}"));
        Step { pod: format!("r-1-{task}-pod"), step: PodStep { task, name, container, state } }
    }

    fn three() -> Vec<Step> {
        vec![
            step("drain", "cordon", StepState::Ended(0)),
            step("restart", "check", StepState::Ended(3)),
            step("restart", "restart", StepState::Skipped),
        ]
    }

    fn run(attempt: u64, name: &str) -> Run {
        Run { attempt, namespace: "exec".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn the_run_is_that_of_the_latest_attempt_or_of_the_one_that_is_asked_for() {
        let once = execution(&json!({"pipelineRunRef": {"name": "r-1", "uid": "u", "namespace": "exec"}}));
        assert_eq!(chosen(&once, None).unwrap(), Some(run(1, "r-1")));
        assert_eq!(chosen(&once, Some(1)).unwrap(), Some(run(1, "r-1")));
        let thrice = execution(&json!({
            "pipelineRunRef": {"name": "r-3", "uid": "u", "namespace": "exec"},
            "attempts": [
                {"attempt": 1, "pipelineRun": "r-1"}, {"attempt": 2, "pipelineRun": "r-3"}, {"attempt": 3},
            ],
        }));
        assert_eq!(chosen(&thrice, None).unwrap(), Some(run(2, "r-3")));
        assert_eq!(chosen(&thrice, Some(1)).unwrap(), Some(run(1, "r-1")));
        let said = chosen(&thrice, Some(3)).unwrap_err().to_string();
        assert_eq!(said, "ns/a has no attempt 3 with a run; those with one: 1, 2");
        assert_eq!(chosen(&execution(&json!({"phase": "Skipped"})), None).unwrap(), None);
    }

    #[test]
    fn the_failed_step_is_the_one_that_the_status_names_or_else_the_first() {
        let named = |task: &str, name: &str| {
            execution(&json!({
                "pipelineRunRef": {"name": "r-1", "uid": "u", "namespace": "exec"},
                "failureDetails": {"failedTaskName": task, "failedStepName": name},
            }))
        };
        let none = execution(&json!({}));
        let r1 = run(1, "r-1");
        assert_eq!(failed(&named("drain", "cordon"), &r1, &three()), Some(0));
        assert_eq!(
            failed(&named("drain", "cordon"), &run(1, "r-0"), &three()),
            Some(1),
            "the status is of another run"
        );
        assert_eq!(failed(&named("gone", "gone"), &r1, &three()), Some(1));
        assert_eq!(failed(&none, &r1, &three()), Some(1));
        assert_eq!(failed(&none, &r1, &three()[..1]), None);
    }

    #[test]
    fn the_failed_step_is_told_with_its_exit_code_and_what_is_left_out() {
        let lines = |count: usize| Log::Lines { lines: vec!["error: PDB\u{1b}[2J".to_owned(); count], note: None };
        let mut steps = three();
        steps.swap(0, 1);
        let logs = steps.into_iter().zip([Some(lines(2)), Some(lines(212)), None]).enumerate();
        let logs = logs.map(|(place, (step, log))| StepLog::of(step, log, place == 0)).collect();
        let answer = Answer { steps: logs, more_steps: 7, ..Answer::of(&execution(&json!({})), Some(&run(1, "r-1"))) };
        assert_eq!(
            answer.told(),
            "[restart : check] error: PDB\\u{1b}[2J\n\
             [restart : check] error: PDB\\u{1b}[2J\n\
             [restart : check] exit code 3\n\
             left out, -a shows them:\n\
             \x20 [drain : cordon] ok, 212 lines\n\
             \x20 [restart : restart] did not run\n\
             7 more steps: kubectl logs shows each, by its pod\n"
        );
    }

    #[test]
    fn each_step_that_is_shown_ends_with_its_state() {
        let of = |state: StepState, log: Option<Log>| StepLog::of(step("t", "s", state), log, true).told();
        let one = |note: Option<&str>| Some(Log::Lines { lines: vec!["a".to_owned()], note: note.map(str::to_owned) });
        for (told, expected) in [
            (of(StepState::Ended(0), one(None)), "[t : s] a\n[t : s] ok\n"),
            (of(StepState::Running, one(Some("cut"))), "[t : s] a\n[t : s] (cut)\n[t : s] runs\n"),
            (of(StepState::Waiting("ImagePullBackOff".to_owned()), None), "[t : s] waits, ImagePullBackOff\n"),
            (of(StepState::Waiting(String::new()), None), "[t : s] waits\n"),
            (of(StepState::Skipped, None), "[t : s] did not run\n"),
            (of(StepState::Ended(1), Some(Log::None("no log".to_owned()))), "[t : s] (no log)\n[t : s] exit code 1\n"),
        ] {
            assert_eq!(told, expected);
        }
    }
}
