//! The table of outcomes, with the status of an execution for each.

use wfe_api::FailureReason::{
    ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
};

use super::row::Started::{No, NobodyKnows, Yes};
use super::row::{Row, completed, failed};

/// A time-out after which Tekton has started everything that can start, even on a machine that compiles meanwhile.
const SOON: &str = "15s";

pub(super) fn rows() -> Vec<Row> {
    [steps(), before(), deadlines(), people(), shapes()].concat()
}

fn steps() -> Vec<Row> {
    vec![
        completed("success").quick(),
        failed("exit-first", Unknown, Yes).task("check", 0).step("run").exit(1).quick(),
        failed("exit-second", Unknown, Yes).task("apply", 1).step("run").exit(42).quick(),
        failed("oom", OomKilled, Yes).task("apply", 1).step("run").exit(137).quick(),
        failed("image-pull-first", ImagePullBackOff, No).task("check", 0).step("run").quick(),
        failed("image-pull-second", ImagePullBackOff, Yes).task("apply", 1).step("run").quick(),
        failed("image-name-invalid", ImagePullBackOff, No).task("check", 0).step("run"),
        failed("container-config-error", ConfigurationError, No).task("check", 0),
        failed("evicted", ResourceExhausted, Yes)
            .task("check", 0)
            .step("run")
            .exit(137)
            .on_oldest(|row| row.because(Unknown)),
        failed("forbidden", Forbidden, Yes).task("apply", 1).step("run").exit(1).quick(),
        failed("forbidden-as-result", Forbidden, Yes).task("apply", 1).step("run").exit(1),
        failed("misleading-words", Unknown, Yes).task("apply", 1).step("run").exit(3).quick(),
    ]
}

fn before() -> Vec<Row> {
    vec![
        failed("missing-bundle", ImagePullBackOff, No).by_start_deadline(SOON),
        failed("missing-bundle-repaired", ImagePullBackOff, No),
        failed("wrong-name", ImagePullBackOff, No).by_start_deadline(SOON),
        failed("wrong-name-repaired", ConfigurationError, No),
        failed("missing-parameter", ConfigurationError, No).quick(),
        failed("bad-graph", ConfigurationError, No).quick(),
        failed("unknown-task", ConfigurationError, No),
        failed("unknown-result", ConfigurationError, No),
        failed("invalid-pipeline", ConfigurationError, No),
        failed("unknown-service-account", ConfigurationError, No).task("check", 0).quick(),
        failed("quota-on-runs", ResourceExhausted, No).quick(),
        failed("quota-on-pods", ResourceExhausted, No).task("check", 0).by_start_deadline(SOON),
        failed("unschedulable", ResourceExhausted, No).task("apply", 0).by_start_deadline(SOON),
        failed("pod-refused", Forbidden, No).task("check", 0),
    ]
}

fn deadlines() -> Vec<Row> {
    vec![
        failed("timeout-of-run-before", DeadlineExceeded, No).task("apply", 0),
        failed("timeout-of-run-after", DeadlineExceeded, Yes).task("apply", 0),
        failed("timeout-of-run-in-second", DeadlineExceeded, Yes).task("apply", 1),
        failed("timeout-of-task-before", DeadlineExceeded, No).task("apply", 0),
        failed("timeout-of-task-after", DeadlineExceeded, Yes).task("apply", 0).quick(),
        failed("timeout-of-finally-before", DeadlineExceeded, Yes).task("notify", 1),
        failed("timeout-of-finally-after", DeadlineExceeded, Yes).task("notify", 1),
        failed("timeout-while-image-is-pulled", ImagePullBackOff, No).task("apply", 0),
    ]
}

fn people() -> Vec<Row> {
    vec![
        failed("cancel-while-resolving", Unknown, No),
        failed("cancel-before", Unknown, No).task("apply", 0),
        failed("cancel-after", Unknown, Yes).task("apply", 0).quick(),
        failed("cancel-and-run-finally", Unknown, Yes).task("apply", 0),
        failed("delete-while-resolving", Unknown, NobodyKnows),
        failed("delete-before", Unknown, NobodyKnows),
        failed("delete-after", Unknown, Yes).quick(),
        completed("pod-deleted").event("StepsReplayed").quick(),
        failed("pod-deleted-then-fails", Unknown, Yes).task("apply", 0).step("run").exit(1).event("StepsReplayed"),
    ]
}

fn shapes() -> Vec<Row> {
    vec![
        failed("two-fail", Unknown, Yes).task("check", 0).step("run").exit(1),
        completed("matrix"),
        failed("matrix-one-fails", Unknown, Yes).task("apply", 0).step("run").exit(7).quick(),
        failed("retries-in-vain", Unknown, Yes).task("apply", 0).step("run").exit(1),
        completed("retries-help").quick(),
        failed("retries-after-timeout", DeadlineExceeded, Yes).task("apply", 0),
        failed("retries-after-image-pull", ImagePullBackOff, No).task("apply", 0).step("run"),
        completed("error-of-task-ignored").quick(),
        failed("error-ignored-then-failure", Unknown, Yes).task("apply", 1).step("run").exit(2),
        completed("task-skipped"),
        completed("all-tasks-skipped").started(No),
        failed("finally-after-failure", Unknown, Yes).task("apply", 0).step("run").exit(1),
        failed("finally-fails", Unknown, Yes).task("notify", 1).step("run").exit(1).quick(),
        failed("finally-image-pull", ImagePullBackOff, Yes).task("notify", 1).step("run"),
        failed("step-fails", Unknown, Yes).task("apply", 0).step("write").exit(5).quick(),
        failed("oom-of-second-step", OomKilled, Yes).task("apply", 0).step("write").exit(137),
        completed("error-of-step-ignored"),
        completed("sidecar"),
        failed("sidecar-fails", Unknown, Yes).task("apply", 0).exit(1),
        failed("sidecar-oom", OomKilled, Yes).task("apply", 0).exit(137),
        failed("step-and-sidecar-fail", OomKilled, Yes).task("apply", 0).exit(137),
        completed("custom-run").started(NobodyKnows),
        failed("custom-run-fails", Unknown, NobodyKnows).task("approve", 0).quick(),
        failed("custom-run-times-out", DeadlineExceeded, NobodyKnows).task("approve", 0),
        failed("custom-run-cancelled", Unknown, NobodyKnows).task("approve", 0),
        completed("nested").started(NobodyKnows),
        failed("nested-fails", Unknown, NobodyKnows).task("inner", 0),
        failed("nested-image-pull", Unknown, NobodyKnows).task("inner", 0),
    ]
}
