//! Live reads between two attempts of an execution: the facts for its conditions, and whether the owner of a finished
//! run waits for another attempt.

use std::collections::BTreeMap;

use tokio::runtime::{Handle, RuntimeFlavor};
use wfe_api::limits;
use wfe_condition::Variables;
use wfe_core::Time;
use wfe_core::action::AttemptFacts;
use wfe_core::findings::FailedTask;
use wfe_core::name::{ExecutionId, RunId};
use wfe_core::residue::ResidueKind;
use wfe_core::retry::{Answer, Answers};
use wfe_core::target::Elsewhere;
use wfe_tekton::Object;
use wfe_view::observe::observe_owner;

use super::examine::view;
use super::objects::is;
use super::task::Question;
use super::{Learned, PerformError, Performer, Result};

impl Performer {
    /// Reads an execution that no watch delivers, after its run has finished.
    pub(super) async fn read_owner(&self, owner: &ExecutionId, now: Time) -> Result<Vec<Learned>> {
        let found = observe_owner(owner, self.read_execution(owner).await?.as_ref());
        tracing::debug!(wfe = %owner, ?found, "read an execution that no watch delivers");
        Ok(vec![Learned::OwnerRead(owner.uid.clone(), Box::new(Elsewhere { at: now, found }))])
    }

    /// Evaluates the conditions of a retry policy for a failed attempt. An error of a condition is an answer, too.
    pub(super) async fn ask(&self, question: Question) -> Result<Vec<Learned>> {
        let Question { execution, run, failed, stop_when, retry_when } = question;
        let result = match &run {
            Some(run) => self.results(run, failed.task.as_ref()).await?,
            None => BTreeMap::new(), // the create of the run was refused
        };
        let attempt = failed.attempt;
        let variables = variables(&execution, &failed, result);
        // An evaluation may take much memory and time, so only a few run in parallel.
        let _turn = self.asking.acquire().await;
        let answers = evaluate(move || {
            let ask = |condition: Option<Box<str>>| condition.map(|condition| ask(&condition, &variables));
            Answers { stop_when: ask(stop_when), retry_when: ask(retry_when) }
        });
        let answers = answers.await;
        tracing::debug!(wfe = %execution, attempt, ?answers, "asked whether to try again");
        Ok(vec![Learned::Answered { execution: execution.uid, attempt, answers: Box::new(answers) }])
    }

    /// Reads the results of a run and of its failed TaskRun.
    async fn results(&self, run: &RunId, task: Option<&FailedTask>) -> Result<BTreeMap<String, String>> {
        let found = self.read_run(&run.name).await?.filter(|found| is(&found.metadata, &run.uid));
        // If the run is gone, the watch will deliver its deletion, and the question becomes obsolete.
        let found = found.ok_or_else(|| PerformError::Changed { what: format!("PipelineRun {run}") })?;
        let task_runs = match task {
            Some(_) => self.made_for(run, ResidueKind::TaskRun).await?,
            None => Vec::new(),
        };
        let views: Vec<Object<'_>> = task_runs.iter().map(view).collect();
        Ok(wfe_tekton::results(view(&found), &views, task.map(|task| &*task.name)))
    }
}

/// Evaluates conditions on a blocking thread. On a runtime with a single thread, as in a simulation, it evaluates in
/// place: another thread would make the order of events random.
async fn evaluate(work: impl FnOnce() -> Answers + Send + 'static) -> Answers {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    // The thread fails only by a panic, and a panic is no answer.
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

/// Returns the variables of conditions for an attempt.
fn variables(execution: &ExecutionId, failed: &AttemptFacts, result: BTreeMap<String, String>) -> Variables {
    let task = failed.task.as_ref();
    Variables {
        attempt: failed.attempt,
        max_attempts: failed.of,
        reason: failed.reason.as_str().to_owned(),
        error: limits::cut(&failed.message, limits::MESSAGE), // cut as in the status
        exit_code: task.and_then(|task| task.exit_code),
        was_execution_failure: failed.was_execution_failure,
        node_id: task.map(|task| task.name.to_string()).unwrap_or_default(),
        execution_id: execution.uid.to_string(),
        result,
    }
}

/// Evaluates a condition. An error is reported by its class, without any value.
fn ask(condition: &str, variables: &Variables) -> Answer {
    wfe_condition::ask(condition, variables).map_err(|error| error.to_string().into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::played::{Answer as Answered, failures, performer};
    use super::*;
    use serde_json::{Value, json};
    use wfe_core::name::Uid;
    use wfe_core::reason::FailureReason;
    use wfe_core::target::OwnerRead;

    fn answer(condition: &str, task: Option<FailedTask>, result: &[(&str, &str)]) -> Answer {
        let execution = ExecutionId { namespace: "ops".into(), name: "a".into(), uid: Uid::new("u-1") };
        let failed = AttemptFacts {
            attempt: 2,
            of: 3,
            reason: FailureReason::DeadlineExceeded,
            message: "too slow".into(),
            was_execution_failure: true,
            task,
        };
        let result = result.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ask(condition, &variables(&execution, &failed, result))
    }

    fn task(exit_code: Option<i32>) -> FailedTask {
        FailedTask { name: "call".into(), index: 0, step: None, exit_code, registry: None }
    }

    /// Reads the owner of a finished run while the API server gives this answer.
    async fn owner_read(answer: Answered) -> std::result::Result<OwnerRead, &'static str> {
        let owner = ExecutionId { namespace: "ops".into(), name: "a".into(), uid: Uid::new("u-1") };
        let (performer, asked) = performer(move |_| answer.clone());
        let read = performer.read_owner(&owner, Time::UNIX_EPOCH).await;
        assert_eq!(asked.load(Ordering::Relaxed), 1, "one read, and no hidden retry");
        match read.map_err(|error| error.label())?.as_slice() {
            [Learned::OwnerRead(uid, read)] => {
                assert_eq!((uid, read.at), (&owner.uid, Time::UNIX_EPOCH));
                Ok(read.found.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_owner_of_a_finished_run_frees_the_target_only_where_that_was_read() {
        let owner = |uid: &str, status: &Value| {
            Answered::found(json!({
                "metadata": {"namespace": "ops", "name": "a", "uid": uid}, "spec": {"retry": 3}, "status": status,
            }))
        };
        let waiting = json!({
            "phase": "Running", "startTime": "2027-01-01T00:00:00Z",
            "attempts": [{"attempt": 1}, {"attempt": 2, "notBefore": "2027-01-01T00:00:11Z"}],
        });
        assert!(matches!(owner_read(owner("u-1", &waiting)).await, Ok(OwnerRead::Waits { .. })));
        let over = [
            owner("u-1", &json!({"phase": "Completed"})),
            owner("u-1", &json!({"phase": "Failed"})),
            owner("u-1", &json!({"phase": "Skipped"})),
            owner("u-2", &waiting),
            Answered::refused(404, "NotFound"),
        ];
        for answer in over {
            assert_eq!(owner_read(answer.clone()).await, Ok(OwnerRead::Over), "{answer:?}");
        }
        let late = [
            owner("u-1", &json!({"phase": "Running"})),
            owner("u-1", &json!({"phase": "Running", "attempts": "x"})),
            owner("u-1", &json!({"phase": "Pending"})),
            owner("u-1", &json!({"phase": "Odd"})),
            owner("u-1", &json!({"phase": 7})),
            owner("u-1", &json!(null)),
            Answered::found(json!({})),
            Answered::found(json!({"metadata": {"namespace": "ops", "name": "a"}, "status": {"phase": "Failed"}})),
        ];
        for answer in late {
            assert_eq!(owner_read(answer.clone()).await, Ok(OwnerRead::Late), "{answer:?}");
        }
        for (answer, label) in failures() {
            assert_eq!(owner_read(answer.clone()).await, Err(label), "{answer:?}");
        }
    }

    #[test]
    fn every_variable_has_the_value_of_the_attempt() {
        for condition in [
            "attempt == 2 && maxAttempts == 3",
            "reason == 'DeadlineExceeded' && error == 'too slow'",
            "!success && wasExecutionFailure",
            "exitCode == 75 && nodeId == 'call' && executionId == 'u-1'",
            "result.of == 'it' && statusCode == 503 && data.retry",
        ] {
            let result = [("of", "it"), ("statusCode", "503"), ("data", r#"{"retry": true}"#)];
            assert_eq!(answer(condition, Some(task(Some(75))), &result), Ok(true), "{condition}");
        }
        assert_eq!(answer("exitCode == -1 && nodeId == ''", None, &[]), Ok(true));
        assert_eq!(answer("exitCode == -1", Some(task(None)), &[]), Ok(true));
    }

    #[test]
    fn an_error_is_an_answer_that_quotes_no_value() {
        for (condition, said) in [
            ("result.absent == ''", "no such key"),
            ("1 / statusCode == 1", "division by zero"),
            ("int(result.of) == 1", "a conversion failed"),
            ("no + such", "the condition cannot be used: it uses `no`, "),
        ] {
            let answer = answer(condition, None, &[("of", "s3cr3t")]).unwrap_err();
            assert!(answer.starts_with(said) && !answer.contains("s3cr3t"), "{condition}: {answer}");
        }
    }
}
