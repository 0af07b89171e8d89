//! Two operators, each behind a proxy of its own, and the harm that the soak does to them.

use std::cell::Cell;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use wfe_testkit::proxy::{Answer, Request, Verb};
use wfe_testkit::{Fault, Operator, Proxy, Refusal, World};

/// How long the operators are left alone at the beginning. When the harm begins, work is already in progress.
const PEACE: Duration = Duration::from_secs(2);

/// Both operators.
pub(crate) struct Chaos<'a> {
    rivals: [Rival<'a>; 2],
    rng: fastrand::Rng,
    pauses: u32,
    world: &'a World,
}

/// One of the two operators. After it is killed, another process takes its place.
struct Rival<'a> {
    world: &'a World,
    proxy: Proxy,
    operator: Option<Operator>,
    /// The time until which the operator is stopped (SIGSTOP) or partitioned, or its watches are frozen.
    harmed_until: Option<Instant>,
    kills: u32,
    stops: u32,
    partitions: u32,
    lags: u32,
}

impl<'a> Chaos<'a> {
    pub(crate) async fn start(world: &'a World, rng: fastrand::Rng) -> Result<Self> {
        let rivals = [Rival::start(world).await?, Rival::start(world).await?];
        Ok(Self { rivals, rng, pauses: 0, world })
    }

    /// Harms the operators until `stop` is set.
    pub(crate) async fn rage(&mut self, stop: &Cell<bool>) -> Result<()> {
        tokio::time::sleep(PEACE).await;
        while !stop.get() {
            tokio::time::sleep(Duration::from_millis(self.rng.u64(100..1_000))).await;
            if self.rng.u8(..3) == 0 {
                self.pause_namespace().await?;
            }
            let which = self.rng.usize(..self.rivals.len());
            let rng = self.rng.fork();
            self.rivals[which].harm(rng).await?;
            for rival in &mut self.rivals {
                rival.recover(false)?;
            }
        }
        Ok(())
    }

    /// Ends all harm: both operators run, and the proxies forward everything.
    pub(crate) async fn calm(&mut self) -> Result<()> {
        for rival in &mut self.rivals {
            rival.recover(true)?;
            rival.proxy.heal();
            rival.ensure_running().await?;
        }
        Ok(())
    }

    /// Ends the operators, fails if one has panicked, and returns what was done to them.
    pub(crate) async fn terminate(self) -> Result<String> {
        let mut said = format!("the namespace was paused {} times", self.pauses);
        for (rival, letter) in self.rivals.into_iter().zip(["A", "B"]) {
            if let Some(operator) = rival.operator {
                operator.terminate().await?;
            }
            let Rival { kills, stops, partitions, lags, .. } = rival;
            let requests = rival.proxy.requests();
            // These include the last requests of killed operators.
            let unanswered = requests.iter().filter(|passed| passed.applied != passed.answered).count();
            let count = requests.len();
            write!(
                said,
                "\noperator {letter}: {kills} times killed, {stops} stopped, {partitions} partitioned, {lags} made to \
                 lag; of {count} requests {unanswered} were answered otherwise than by the API server",
            )?;
        }
        Ok(said)
    }

    /// Freezes the watches, and then pauses the namespace for a moment. Operators have by then created runs that they
    /// have not seen yet, and withdraw these runs.
    async fn pause_namespace(&mut self) -> Result<()> {
        self.pauses += 1;
        for rival in self.rivals.iter().filter(|rival| rival.harmed_until.is_none()) {
            rival.proxy.freeze_watches(true);
        }
        tokio::time::sleep(Duration::from_millis(self.rng.u64(100..600))).await;
        let namespaces: Api<Namespace> = Api::all(self.world.client());
        for value in [Some("soak"), None] {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"kubernaut.ai/paused": value}}}));
            namespaces.patch(self.world.namespace(), &PatchParams::default(), &patch).await?;
            for rival in self.rivals.iter().filter(|rival| rival.harmed_until.is_none()) {
                rival.proxy.freeze_watches(false);
            }
            tokio::time::sleep(Duration::from_millis(self.rng.u64(..500))).await;
        }
        Ok(())
    }
}

impl<'a> Rival<'a> {
    async fn start(world: &'a World) -> Result<Self> {
        let proxy = Proxy::start(world.control_plane()).await?;
        let mut rival =
            Self { world, proxy, operator: None, harmed_until: None, kills: 0, stops: 0, partitions: 0, lags: 0 };
        rival.ensure_running().await?;
        Ok(rival)
    }

    async fn ensure_running(&mut self) -> Result<()> {
        if self.operator.is_none() {
            let operator = self.world.operator();
            // Short durations, which elapse within a soak.
            let operator = operator
                .arg("--pipelinerun-retention", "5s")
                .arg("--start-deadline", "1m")
                .arg("--cooldown-period", "15s")
                .arg("--base-cooldown-period", "1s")
                .arg("--max-cooldown-period", "4s")
                // The bursts fail on many targets all the time. With a lower limit, the schedules would always be held.
                .arg("--outage-targets", "15")
                .arg("--outage-window", "3s")
                .arg("--breaker-threshold", "0")
                .arg("--triage-cooldown", "20s")
                .arg("--triage-max-per-hour", "1000")
                .arg("--max-consecutive-failures", "3");
            self.operator = Some(operator.through(&self.proxy).spawn().await?);
        }
        Ok(())
    }

    async fn harm(&mut self, mut rng: fastrand::Rng) -> Result<()> {
        if self.harmed_until.is_some() {
            return Ok(()); // one harm at a time, so that the operator gets some work done in between
        }
        let mut until = |millis| self.harmed_until = Some(Instant::now() + Duration::from_millis(millis));
        match rng.u8(..16) {
            0..2 => {
                if let Some(operator) = self.operator.take() {
                    self.kills += 1;
                    operator.kill().await?;
                }
                self.ensure_running().await?;
            }
            2..4 => {
                if let Some(operator) = &self.operator {
                    self.stops += 1;
                    operator.pause()?;
                    until(rng.u64(300..6_000));
                }
            }
            4 => {
                self.partitions += 1;
                self.proxy.partition(true);
                until(rng.u64(300..5_000));
            }
            5..9 => {
                self.lags += 1;
                self.proxy.freeze_watches(true);
                until(rng.u64(200..4_000));
            }
            9 => self.proxy.cut_all(),
            10..13 => self.proxy.on(move |request| fault(&mut rng, request)),
            _ => self.proxy.on(|_| Fault::Pass),
        }
        Ok(())
    }

    /// Ends the harm if it has lasted long enough, or at once if `now` is set.
    fn recover(&mut self, now: bool) -> Result<()> {
        if self.harmed_until.is_some_and(|until| now || until <= Instant::now()) {
            self.harmed_until = None;
            self.proxy.partition(false);
            self.proxy.freeze_watches(false);
            if let Some(operator) = &self.operator {
                operator.resume()?; // no effect on an operator that is not stopped
            }
        }
        Ok(())
    }
}

/// Chooses what happens to a request. Most requests pass.
fn fault(rng: &mut fastrand::Rng, request: &Request) -> Fault {
    let mut millis = |most| Duration::from_millis(rng.u64(..most));
    let (short, long) = (millis(500), millis(2_000));
    let choice = rng.u8(..100);
    if request.verb == Verb::Watch {
        return match choice {
            0..3 => Fault::Expire,
            3 => Fault::Close,
            4 => Fault::Refuse(Refusal::expired()),
            _ => Fault::Pass,
        };
    }
    match choice {
        0..8 => Fault::late(short),
        8..12 => Fault::Delay { before: Duration::ZERO, after: long },
        12..14 => Fault::late(long),
        14 => Fault::Drop,
        15 => Fault::NeverAnswer,
        16..18 => Fault::Close,
        18..22 => Fault::LoseAnswer,
        22 => Fault::Refuse(Refusal::conflict()),
        23 => Fault::Refuse(Refusal::throttled(1)),
        24 => Fault::Refuse(Refusal::throttled_plainly(1)),
        25 => Fault::Refuse(Refusal::internal()),
        26 => Fault::Refuse(Refusal::unavailable()),
        27 => Fault::Refuse(Refusal::expired()),
        28..31 => Fault::Duplicate { pause: short, answer: Answer::First },
        31 => Fault::Duplicate { pause: long, answer: Answer::Second },
        _ => Fault::Pass,
    }
}
