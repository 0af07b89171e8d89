//! The demo: shows on a real control plane what the operator does. It exits with 0 only if the operator really did so.

use std::process::ExitCode;

use wfe_testkit::demo;

fn main() -> ExitCode {
    // One thread, because child processes end with the thread that starts them.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return demo::fail(&error.into()),
    };
    match runtime.block_on(demo::run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => demo::fail(&error),
    }
}
