//! `kubectl wfe dashboard`: serves the page of the overview on this machine, until Ctrl-C.
//!
//! The page is read with the caller's permissions, so no other user may read it. The server listens on loopback alone,
//! and its address has a secret that only the caller's terminal shows.

mod door;
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use self::door::Door;
use crate::cli::{ClusterArgs, DashboardArgs};
use crate::connection::Connection;
use crate::output::output;
use crate::page::{Page, Window};
use crate::view::Lookout;

/// How often a page is read again: a person looks at it, and no program acts on it.
const REFRESHES_AFTER: Duration = Duration::from_secs(10);
/// The pause after a read is this many times as long as the read. A read that takes 3 seconds is made once a minute.
const SHARE: u32 = 20;
/// The longest time between two reads. A read that takes longer than this limit allows fails by its time-outs.
const LONGEST: Duration = Duration::from_mins(5);

/// Reads the cluster for all pages that are open.
struct Reader<'a> {
    connection: Connection,
    cluster: &'a ClusterArgs,
    args: &'a DashboardArgs,
    latest: Mutex<Option<Reading>>,
}

/// The cluster as it was read once.
#[derive(Clone)]
struct Reading {
    page: Arc<Page>,
    ended: Instant,
    /// How long until the cluster is read again.
    lasts: Duration,
}

/// Runs the command. Always yes.
pub(crate) async fn run(cluster: &ClusterArgs, args: &DashboardArgs) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let reader = Reader { connection, cluster, args, latest: Mutex::default() };
    reader.read().await?; // an error must appear on the terminal, before a browser is opened
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on 127.0.0.1")?;
    let door = Door::new(listener.local_addr()?.port())?;
    writeln!(output(), "{}", door.address())?;
    crate::output::note("every user who knows this address sees what you may see; Ctrl-C ends it");
    tokio::select! {
        () = server::serve(listener, &door, async |window| reader.html(window).await) => {}
        ended = tokio::signal::ctrl_c() => ended.context("cannot wait for Ctrl-C")?,
    }
    Ok(true)
}

impl Reader<'_> {
    /// Reads the cluster, unless another page has done so a short time ago.
    async fn read(&self) -> Result<Reading> {
        let mut latest = self.latest.lock().await;
        if let Some(latest) = latest.as_ref().filter(|it| it.ended.elapsed() < it.lasts / 2) {
            return Ok(latest.clone());
        }
        let began = Instant::now();
        let lookout = Lookout::on(self.connection.clone(), &self.args.view).await?;
        let page = Arc::new(Page::read(&lookout, self.cluster).await?);
        let reading = Reading { page, ended: Instant::now(), lasts: pause(began.elapsed()) };
        *latest = Some(reading.clone());
        Ok(reading)
    }

    async fn html(&self, window: Option<Window>) -> Result<String> {
        let reading = self.read().await?;
        Ok(reading.page.html(Some(reading.lasts.as_secs()), window))
    }
}

/// Returns how long to wait after a read that took so long.
fn pause(took: Duration) -> Duration {
    (took * SHARE).clamp(REFRESHES_AFTER, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_cluster_is_read_less_often() {
        for (took, expected) in [(0, 10), (400, 10), (3_000, 60), (60_000, 300)] {
            assert_eq!(pause(Duration::from_millis(took)), Duration::from_secs(expected), "{took} ms");
        }
    }
}
