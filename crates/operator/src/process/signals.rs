//! The signals that request the process to stop: SIGTERM from Kubernetes, and SIGINT from a keyboard.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal handlers, from the start of the process to its end. A signal is kept until a task waits for it.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub fn install() -> anyhow::Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        Ok(Self { terminate, interrupt })
    }

    /// Waits for a signal. An earlier signal that was not consumed counts.
    ///
    /// # Cancellation
    /// Safe: a signal is consumed only when this returns.
    pub async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_that_arrives_while_nobody_waits_is_kept() -> anyhow::Result<()> {
        let mut signals = StopSignals::install()?;
        // Another handler shows when the signal has arrived.
        let mut arrival = signal(SignalKind::terminate())?;
        let pid = std::process::id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status()?.success());
        arrival.recv().await;
        tokio::time::timeout(std::time::Duration::from_secs(5), signals.next()).await?;
        Ok(())
    }
}
