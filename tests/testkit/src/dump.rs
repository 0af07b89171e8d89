//! The output for a person after a failed test: the objects of the test's world, events, and the end of the operator's
//! log.

use std::sync::PoisonError;

use crate::process::last_lines;
use crate::world::World;

/// The most characters of output per query. The beginning matters most, because older objects come first.
const PER_QUERY: usize = 12_000;
const LOG_LINES: usize = 60;

/// Prints the objects and logs to standard error, which the test harness shows for failed tests.
pub(crate) fn print(world: &World) {
    let execution = world.execution_namespace();
    eprintln!("=== dump of {} (logs of the components: {})", world.namespace(), world.control_plane().logs().display());
    for (namespace, kind) in [
        (world.namespace(), "workflowexecutions"),
        (&execution, "pipelineruns"),
        (&execution, "taskruns"),
        (&execution, "pods"),
    ] {
        query(world, &["get", kind, "-n", namespace, "-o", "wide"]);
    }
    let system = world.system_namespace();
    query(world, &["get", "configmaps", "-n", &system, "-o", "yaml"]);
    for namespace in [world.namespace(), &execution, &system] {
        query(world, &["get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp"]);
    }
    query(world, &["get", "workflowexecutions", "-n", world.namespace(), "-o", "yaml"]);
    for kind in ["pipelineruns", "taskruns", "pods"] {
        query(world, &["get", kind, "-n", &execution, "-o", "yaml"]);
    }
    for log in world.operator_logs.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        eprintln!("--- {}\n{}", log.display(), last_lines(log, LOG_LINES));
    }
    eprintln!("=== end of the dump of {}", world.namespace());
}

fn query(world: &World, args: &[&str]) {
    eprintln!("--- kubectl {}", args.join(" "));
    // Without the time-out, a control plane that was stopped would delay the dump.
    match world.control_plane().kubectl_command(args).arg("--request-timeout=5s").output() {
        Ok(output) => {
            let text = if output.status.success() { output.stdout } else { output.stderr };
            let text = String::from_utf8_lossy(&text);
            match text.char_indices().nth(PER_QUERY) {
                Some((end, _)) => eprintln!("{}\n... (cut)", &text[..end]),
                None => eprintln!("{}", text.trim_end()),
            }
        }
        Err(error) => eprintln!("{error}"),
    }
}
