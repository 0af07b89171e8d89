//! The supervised tasks of the process, which must not end before the process does.
//!
//! A task that panics or returns is noticed only when it is joined. An operator that has lost one of its watches would
//! continue to lead with an outdated view. Therefore the end of any of these tasks ends the process, with an error that
//! names the task.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;

use anyhow::{Context, anyhow};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// The supervised tasks, by name. Dropping this aborts them.
#[derive(Debug, Default)]
pub struct SupervisedTasks {
    tasks: JoinSet<anyhow::Result<()>>,
    /// The names of the tasks that were not joined yet.
    names: HashMap<Id, String>,
}

impl SupervisedTasks {
    /// Starts a task.
    pub fn spawn<E: Into<anyhow::Error>>(
        &mut self,
        name: impl Into<String>,
        part: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> AbortHandle {
        let task = self.tasks.spawn(async { part.await.map_err(Into::into) });
        self.names.insert(task.id(), name.into());
        task
    }

    /// Waits until any task has ended, and returns why the process must end. Without tasks it never returns.
    ///
    /// # Cancellation
    /// Safe: a task is joined only when this returns.
    pub async fn ended(&mut self) -> anyhow::Error {
        match self.tasks.join_next_with_id().await {
            Some(ended) => {
                let (name, ended) = self.judge(ended);
                ended.err().unwrap_or_else(|| anyhow!("{name} ended although nobody asked it to"))
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until the task of this name has ended. Returns at once if the task was joined before. An aborted task
    /// counts as ended without an error.
    ///
    /// # Errors
    /// Why the task failed.
    pub async fn join(&mut self, name: &str) -> anyhow::Result<()> {
        while self.names.values().any(|known| known == name)
            && let Some(ended) = self.tasks.join_next_with_id().await
        {
            let (ended_name, ended) = self.judge(ended);
            if ended_name == name {
                return ended;
            }
            // The process is about to end, so other tasks may end meanwhile.
            tracing::debug!(part = ended_name, ?ended, "ended");
        }
        Ok(())
    }

    fn judge(&mut self, ended: Result<(Id, anyhow::Result<()>), JoinError>) -> (String, anyhow::Result<()>) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, ended),
            Err(error) => (error.id(), why(error)),
        };
        let name = self.names.remove(&id).unwrap_or_default();
        let ended = ended.with_context(|| format!("{name} failed"));
        (name, ended)
    }
}

/// Returns the error of a task that was not aborted, or the message of its panic.
fn why(error: JoinError) -> anyhow::Result<()> {
    if error.is_cancelled() {
        return Ok(());
    }
    let panic: Box<dyn Any + Send> = error.into_panic();
    let words =
        panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    Err(anyhow!("it panicked: {}", words.unwrap_or_else(|| "without words".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{pending, ready};

    use super::*;

    fn endless() -> impl Future<Output = Result<(), Infallible>> {
        pending()
    }

    async fn panics() -> Result<(), Infallible> {
        tokio::task::yield_now().await;
        panic!("no such item")
    }

    #[tokio::test]
    async fn a_part_that_panics_is_named_with_its_words() {
        let mut parts = SupervisedTasks::default();
        parts.spawn("the watch of pods", endless());
        parts.spawn("the watch of pipelineruns", panics());
        let why = format!("{:#}", parts.ended().await);
        assert_eq!(why, "the watch of pipelineruns failed: it panicked: no such item");
    }

    #[tokio::test]
    async fn a_part_that_returns_is_named_with_its_error_where_it_has_one() {
        let mut parts = SupervisedTasks::default();
        parts.spawn("the writer of events", ready(Ok::<(), Infallible>(())));
        let why = format!("{:#}", parts.ended().await);
        assert_eq!(why, "the writer of events ended although nobody asked it to");
        parts.spawn("the health server", ready(Err(std::io::Error::other("no more sockets"))));
        assert_eq!(format!("{:#}", parts.ended().await), "the health server failed: no more sockets");
    }

    #[tokio::test]
    async fn parts_are_joined_by_name_whichever_end_before() {
        let mut parts = SupervisedTasks::default();
        parts.spawn("first", ready(Err(std::io::Error::other("too bad"))));
        let follower = parts.spawn("follower", endless());
        parts.spawn("second", ready(Ok::<(), Infallible>(())));
        assert!(parts.join("second").await.is_ok());
        follower.abort();
        assert!(parts.join("follower").await.is_ok(), "an aborted part has not failed");
        assert!(parts.join("nobody").await.is_ok());
    }
}
