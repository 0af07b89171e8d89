//! What a cluster does by itself, in virtual time. Tekton's controller plays its recorded stories, the garbage
//! collector deletes objects without owners, and the kubelet ends pods.
//!
//! ```text
//! tests/fixtures ── stories ── retell ─┐
//!                      └────── ending ─┴─ tekton ─┐
//!                          follow ─┬──────────────┼─ hand ── server
//!                                  └── collector ─┘
//! ```
//! One task does all of this, one request after the other. The order follows from the seed and from the changes on the
//! server. The task never reads the machine's clock, and its requests meet no network faults.

mod collector;
mod ending;
mod follow;
mod hand;
mod replay;
pub mod scripts;
mod tekton;
pub mod verdicts;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wfe_core::Time;
use wfe_operator::clock::Clock;

use crate::service::FakeApi;
use collector::Collector;
use follow::Follower;
use hand::Hand;
use tekton::Tekton;

/// The controllers of a cluster.
#[derive(Debug)]
pub struct Cluster {
    hand: Hand,
    objects: Follower,
    tekton: Tekton,
    collector: Collector,
    changed: watch::Receiver<u64>,
    weather: watch::Receiver<Weather>,
}

/// Circumstances that keep the controllers from working. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// Tekton's controller is stopped.
    pub tekton_is_down: bool,
    /// Tekton ignores requests to stop a run.
    pub cancels_are_lost: bool,
    /// The hosts of the registries from which nothing can be fetched.
    pub registries_down: BTreeSet<String>,
}

impl Cluster {
    /// Starts the controllers on the current runtime. They run until the task is aborted. The task ends by itself only
    /// with an error: the fixtures cannot be read, or the server refuses a request that a real server accepts.
    ///
    /// `clock` and the clock of `api` must follow tokio's time.
    #[must_use]
    pub fn start(api: FakeApi, clock: Clock, seed: u64, weather: watch::Receiver<Weather>) -> JoinHandle<Result<()>> {
        let changed = api.subscribe();
        let hand = Hand { api, clock };
        let (tekton, collector) = (Tekton::new(hand.clone(), seed), Collector::new(hand.clone(), seed));
        let cluster = Self { hand, objects: Follower::default(), tekton, collector, changed, weather };
        tokio::spawn(cluster.run())
    }

    async fn run(mut self) -> Result<()> {
        loop {
            let now = self.take_in()?;
            let (tekton, collector) = (self.tekton.wake(), self.collector.wake());
            let wake = [tekton, collector].into_iter().flatten().min();
            match wake {
                Some(wake) if wake > now => self.wait(Some(wake - now)).await,
                Some(wake) if tekton == Some(wake) => self.tekton.act(&self.objects, now)?,
                Some(_) => self.collector.act(&self.objects)?,
                None => self.wait(None).await,
            }
        }
    }

    /// Processes the changes since the last call, and returns the current time.
    fn take_in(&mut self) -> Result<Time> {
        let now = self.hand.now();
        self.changed.mark_unchanged();
        // A story that begins now begins with the current weather.
        self.tekton.learn(&self.weather.borrow());
        let objects = &mut self.objects;
        let news = self.hand.api.look(|server| objects.news(server));
        for seen in &news {
            self.collector.see(seen, &self.objects, now);
            self.tekton.see(seen, now)?;
        }
        let is_down = self.weather.borrow_and_update().tekton_is_down;
        self.tekton.turn(is_down, now)?;
        Ok(now)
    }

    /// Waits until an object or the weather changes, but no longer than `most`.
    async fn wait(&mut self, most: Option<chrono::TimeDelta>) {
        // Tokio's timers have a resolution of milliseconds.
        let most = most.map(|most| most.to_std().unwrap_or_default().max(Duration::from_millis(1)));
        let until = async {
            match most {
                Some(most) => tokio::time::sleep(most).await,
                None => std::future::pending().await,
            }
        };
        let turned = async {
            // If the sender of the weather is dropped, the weather no longer changes.
            if self.weather.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            _ = self.changed.changed() => {}
            () = turned => {}
            () = until => {}
        }
    }
}

/// Draws a duration of whole milliseconds.
fn delay(random: &mut Rng, most: Duration) -> Duration {
    Duration::from_millis(random.u64(..=u64::try_from(most.as_millis()).unwrap_or(u64::MAX)))
}

/// Returns the random numbers of a controller for one object. They do not depend on other objects.
fn random_for(seed: u64, controller: &str, object: &Value) -> Rng {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
    let parts = [controller, object["kind"].as_str().unwrap_or_default(), &text("namespace"), &text("name")].join("/");
    // FNV-1a gives the same hash with every version of Rust.
    let hash = parts
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Rng::with_seed(hash)
}
