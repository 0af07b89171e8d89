//! The budgets, and whether the results of a run are within them.

use crate::results::{Measure, Results};

/// One row of the table.
pub(crate) struct Budget {
    pub(crate) what: &'static str,
    pub(crate) limit: Limit,
    /// The text of the unit.
    pub(crate) unit: &'static str,
    value: fn(&Results) -> Option<f64>,
}

/// The limit of a budget.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Budget {
    /// Returns the measured value of a run; `None` if it was not measured.
    pub(crate) fn value(&self, results: &Results) -> Option<f64> {
        (self.value)(results).filter(|value| value.is_finite())
    }

    /// Returns whether a value is within the budget.
    pub(crate) fn holds(&self, value: f64) -> bool {
        match self.limit {
            Limit::AtMost(limit) => value <= limit,
            Limit::AtLeast(limit) => value >= limit,
        }
    }
}

impl Budget {
    /// Returns whether the value depends on the speed of the machine, and on other load there. Counts, bytes and ratios
    /// to the floor depend on these little or not at all.
    pub(crate) fn hangs_on_machine(&self) -> bool {
        matches!(self.unit, "ms" | "µs" | "% of a core")
    }
}

fn median(results: &Results, name: &str) -> Option<f64> {
    results.get(name).map(Measure::median)
}

/// Returns how many requests of these kinds each execution needed in the throughput rounds.
fn requests(results: &Results, kinds: &[&str]) -> Option<f64> {
    results.get("throughput/ratio")?;
    let of = |kind: &&str| median(results, &format!("throughput/operator/requests/{kind}")).unwrap_or_default();
    Some(kinds.iter().map(of).sum())
}

fn quotient(results: &Results, above: &str, below: &str) -> Option<f64> {
    Some(median(results, above)? / median(results, below)?)
}

/// Returns the largest median of the measures with this prefix and suffix.
fn slowest(results: &Results, prefix: &str, suffix: &str) -> Option<f64> {
    let all = results.measures.iter().filter(|(name, _)| name.starts_with(prefix) && name.ends_with(suffix));
    all.map(|(_, measure)| measure.median()).reduce(f64::max)
}

/// All budgets, in the order of the table.
pub(crate) const BUDGETS: &[Budget] = &[
    Budget {
        what: "writes for an execution that succeeds within 5 s",
        limit: Limit::AtMost(4.0),
        unit: "",
        value: |results| {
            requests(
                results,
                &[
                    "create pipelineruns",
                    "patch pipelineruns",
                    "patch workflowexecutions/status",
                    "delete pipelineruns",
                ],
            )
        },
    },
    Budget {
        what: "its events",
        limit: Limit::AtMost(2.0),
        unit: "",
        value: |results| requests(results, &["create events"]),
    },
    Budget {
        what: "its live reads",
        limit: Limit::AtMost(1.0),
        unit: "",
        value: |results| requests(results, &["get pipelineruns", "get workflowexecutions"]),
    },
    Budget {
        what: "its lists",
        limit: Limit::AtMost(0.0),
        unit: "",
        value: |results| {
            results.get("throughput/ratio")?;
            let lists =
                results.measures.iter().filter(|(name, _)| name.starts_with("throughput/operator/requests/list "));
            Some(lists.map(|(_, measure)| measure.median()).sum())
        },
    },
    Budget {
        what: "throughput to Running, 1,000 targets, to the floor's",
        limit: Limit::AtLeast(0.8),
        unit: "",
        value: |results| median(results, "throughput/ratio"),
    },
    Budget {
        what: "a storm of 1,000 on one target, to the floor's time",
        limit: Limit::AtMost(1.5),
        unit: "",
        value: |results| median(results, "storm/ratio/1000"),
    },
    Budget {
        what: "a storm of 10,000 on one target, to the floor's time",
        limit: Limit::AtMost(1.5),
        unit: "",
        value: |results| median(results, "storm/ratio/10000"),
    },
    Budget {
        what: "time of each in a storm of 10,000, to that in one of 1,000 (work is linear)",
        limit: Limit::AtMost(1.3),
        unit: "",
        value: |results| quotient(results, "storm/operator/us/10000", "storm/operator/us/1000"),
    },
    Budget {
        what: "time of each of 10,000 that wait behind one place of a limit, to the floor's in a storm of 10,000",
        limit: Limit::AtMost(1.5),
        unit: "",
        value: |results| quotient(results, "limits/us/10000", "storm/floor/us/10000"),
    },
    Budget {
        what: "their requests in five seconds at rest",
        limit: Limit::AtMost(0.0),
        unit: "",
        value: |results| median(results, "limits/requests_at_rest"),
    },
    Budget {
        what: "the slowest reading verb of kubectl wfe with 10,000 executions: its own processor time",
        limit: Limit::AtMost(1000.0),
        unit: "ms",
        value: |results| results.get("limits/us/10000").and_then(|_| slowest(results, "verbs/", "/own")),
    },
    Budget {
        what: "live reads of the holder for each execution of a storm of 1,000 (one a batch)",
        limit: Limit::AtMost(0.2),
        unit: "",
        value: |results| median(results, "storm/operator/get pipelineruns/1000"),
    },
    Budget {
        what: "create to PipelineRun, idle: p99 above the floor's",
        limit: Limit::AtMost(25.0),
        unit: "ms",
        value: |results| median(results, "latency/idle/p99_above_floor"),
    },
    Budget {
        what: "the same beside 2,400 undecided of another namespace on as many targets: p99, to the floor's",
        limit: Limit::AtMost(3.0),
        unit: "",
        value: |results| median(results, "fairness/own/ratio"),
    },
    Budget {
        what: "the same beside 2,400 undecided of another namespace on twelve targets: p99, to the floor's",
        limit: Limit::AtMost(3.0),
        unit: "",
        value: |results| median(results, "fairness/rivals/ratio"),
    },
    Budget {
        what: "what all admission policies together add to a creation, to a creation without them",
        limit: Limit::AtMost(0.5),
        unit: "",
        value: |results| quotient(results, "policies/added", "policies/without"),
    },
    Budget {
        what: "memory of the index for a terminal execution with its run, alone on its target",
        limit: Limit::AtMost(1500.0),
        unit: "bytes",
        value: |results| median(results, "index/bytes_per_terminal_execution_alone_on_its_target"),
    },
    Budget {
        what: "resident memory with 50,000 executions and their runs",
        limit: Limit::AtMost(150.0),
        unit: "MB",
        value: |results| median(results, "memory/resident/50000"),
    },
    Budget {
        what: "start to ready with 50,000 executions and their runs, to a bare list",
        limit: Limit::AtMost(1.3),
        unit: "",
        value: |results| median(results, "start/ratio/50000"),
    },
    Budget {
        what: "writes of that start",
        limit: Limit::AtMost(0.0),
        unit: "",
        value: |results| median(results, "start/writes/50000"),
    },
    Budget {
        what: "processor, idle with 50,000",
        limit: Limit::AtMost(0.5),
        unit: "% of a core",
        value: |results| median(results, "idle/cpu/50000"),
    },
    Budget {
        what: "requests in half a minute with 5,000 schedules at rest",
        limit: Limit::AtMost(0.0),
        unit: "",
        value: |results| median(results, "schedules/requests_at_rest"),
    },
    Budget {
        what: "a slot to its child, 50 of 5,000 schedules due together: p99",
        limit: Limit::AtMost(1000.0),
        unit: "ms",
        value: |results| median(results, "schedules/creation/p99"),
    },
    Budget {
        what: "500 cron schedules due in one second: the last child, to a client that creates the same on eight connections",
        limit: Limit::AtMost(1.33),
        unit: "",
        value: |results| median(results, "schedules/minute/ratio"),
    },
    Budget {
        what: "`decide` with 10,000 schedules of one target",
        limit: Limit::AtMost(400.0),
        unit: "ms",
        value: |results| Some(median(results, "micro/schedules/of-one-target/10000")? / 1e6),
    },
    Budget {
        what: "circuits, a turn among 50,000 schedules that wait for one",
        limit: Limit::AtMost(100.0),
        unit: "ms",
        value: |results| Some(median(results, "micro/circuits/turn/50000")? / 1e6),
    },
    Budget {
        what: "memory of the index for a schedule with a child",
        limit: Limit::AtMost(2000.0),
        unit: "bytes",
        value: |results| median(results, "index/bytes_per_schedule_with_a_child"),
    },
    Budget {
        what: "`decide` with a history of 10",
        limit: Limit::AtMost(5.0),
        unit: "µs",
        value: |results| Some(median(results, "micro/decide/judge/10")? / 1e3),
    },
    Budget {
        what: "`decide` with a history of 1,000, to ten times that with 100 (no faster than the history)",
        limit: Limit::AtMost(1.3),
        unit: "",
        value: |results| Some(quotient(results, "micro/decide/judge/1000", "micro/decide/judge/100")? / 10.0),
    },
    Budget {
        what: "circuits, fifty ends a second with a hundred fingerprints",
        limit: Limit::AtMost(5.0),
        unit: "% of a core",
        value: |results| Some(median(results, "micro/circuits/second/100")? / 1e7),
    },
    Budget {
        what: "circuits, folding 50,000 executions",
        limit: Limit::AtMost(100.0),
        unit: "ms",
        value: |results| Some(median(results, "micro/circuits/fold/50000")? / 1e6),
    },
    Budget {
        what: "the operator's binary, stripped",
        // The support for traces needs 1.2 MB of this.
        limit: Limit::AtMost(21.0),
        unit: "MB",
        value: |results| median(results, "binary/size"),
    },
    Budget {
        what: "its start until it serves health",
        limit: Limit::AtMost(100.0),
        unit: "ms",
        value: |results| median(results, "binary/health"),
    },
];
