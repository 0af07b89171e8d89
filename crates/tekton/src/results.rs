//! Reads the results of a failed run for the conditions of a retry policy.

use std::collections::BTreeMap;

use crate::object::{Object, list, text};

/// Reads the string results of a failed run. The results of the failed TaskRun of the pipeline's `task` have
/// precedence. If there are several such TaskRuns, as in a matrix, the first to end counts. Results that are lists or
/// objects are skipped.
#[must_use]
pub fn results(run: Object<'_>, task_runs: &[Object<'_>], task: Option<&str>) -> BTreeMap<String, String> {
    let of_task = task_runs.iter().filter(|it| task == Some(it.task()) && it.condition().status == "False");
    let failed = of_task.min_by_key(|it| (it.completed_at().is_none(), it.completed_at(), it.name()));
    let results = [Some(&run), failed].into_iter().flatten().flat_map(|object| list(&object.data["status"], "results"));
    let strings =
        results.filter_map(|result| Some((text(result, "name")?.to_owned(), text(result, "value")?.to_owned())));
    strings.collect() // if two have the same name, the later one stays
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, VERSIONS, stories_of, story_of};
    use serde_json::{Value, json};

    fn run(results: &Value) -> Owned {
        Owned::new(&json!({"kind": "PipelineRun", "metadata": {"name": "r"}, "status": {"results": results}}))
    }

    fn task_run(name: &str, task: &str, status: &str, completed_at: &str, results: &Value) -> Owned {
        Owned::new(&json!({
            "kind": "TaskRun",
            "metadata": {"name": name, "labels": {"tekton.dev/pipelineTask": task}},
            "status": {
                "conditions": [{"type": "Succeeded", "status": status}],
                "completionTime": completed_at,
                "results": results,
            },
        }))
    }

    fn read(run: &Owned, task_runs: &[Owned], task: Option<&str>) -> Vec<(String, String)> {
        let views: Vec<Object<'_>> = task_runs.iter().map(Owned::view).collect();
        results(run.view(), &views, task).into_iter().collect()
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn results_of_the_task_that_failed_come_over_those_of_the_run() {
        let run = run(&json!([{"name": "statusCode", "value": "200"}, {"name": "of-run", "value": "x"}]));
        let early = "2027-01-01T00:00:01Z";
        let call = |status, at, code| task_run(at, "call", status, at, &json!([{"name": "statusCode", "value": code}]));
        let other = task_run("other", "other", "False", early, &json!([{"name": "statusCode", "value": "0"}]));
        let of = |code| pairs(&[("of-run", "x"), ("statusCode", code)]);
        let tasks = [call("False", "2027-01-01T00:00:03Z", "502"), call("False", "2027-01-01T00:00:02Z", "503"), other];
        assert_eq!(read(&run, &tasks, Some("call")), of("503"), "the first that failed");
        assert_eq!(read(&run, &tasks, Some("absent")), of("200"));
        assert_eq!(read(&run, &tasks, None), of("200"));
        let passed = [call("True", early, "204"), call("Unknown", early, "102")];
        assert_eq!(read(&run, &passed, Some("call")), of("200"), "none of it failed");
    }

    #[test]
    fn only_strings_are_results() {
        let odd = json!([
            {"name": "list", "value": ["a"], "type": "array"}, {"name": "map", "value": {"a": "b"}},
            {"name": "number", "value": 7}, {"name": "none"}, {"value": "nameless"}, {"name": 1, "value": "x"}, null, 7, "x",
            {"name": "text", "value": "", "type": "string"},
        ]);
        assert_eq!(read(&run(&odd), &[], None), pairs(&[("text", "")]));
        for none in [json!(null), json!(7), json!({}), json!([])] {
            assert_eq!(read(&run(&none), &[], Some("")), pairs(&[]), "{none}");
        }
        let bare = Owned::new(&json!({"kind": "PipelineRun", "metadata": {}}));
        assert_eq!(read(&bare, &[task_run("t", "", "False", "soon", &odd)], Some("")), pairs(&[("text", "")]));
    }

    #[test]
    fn tekton_keeps_the_results_of_a_step_that_failed() {
        for version in VERSIONS {
            let story = story_of(version, "forbidden-as-result");
            let (_, world) = story.follow();
            let found = world.remains(&story.run, |remains| {
                let run = remains.run.unwrap();
                let failed = remains.task_runs.iter().find(|it| it.condition().status == "False").unwrap();
                results(run, remains.task_runs, Some(failed.task()))
            });
            assert_eq!(found.keys().collect::<Vec<_>>(), ["error"], "{version}");
            assert!(found["error"].starts_with("deployments.apps \"payment-api\" is forbidden"), "{version}");
        }
    }

    #[test]
    fn every_story_has_an_answer() {
        for (version, name) in
            VERSIONS.into_iter().flat_map(|it| stories_of(it).into_iter().map(move |name| (it, name)))
        {
            let story = story_of(version, name);
            let (_, world) = story.follow();
            world.remains(&story.run, |remains| {
                for task in remains.task_runs {
                    let found = remains.run.map(|run| results(run, remains.task_runs, Some(task.task())));
                    assert!(found.is_none_or(|it| name == "forbidden-as-result" || it.is_empty()), "{version} {name}");
                }
            });
        }
    }
}
