//! Fifty random histories. `explain` predicts what happens to a new execution, and an operator must then do the same
//! (sections 6, 7 and 10). Some of them are in a paused namespace, have a leader that is killed or frozen in between,
//! or are in a cluster without Tekton. No prediction changes within three minutes with time alone.
//!
//! `WFE_HISTORIES_SEED` repeats a run of this test.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use chrono::{TimeDelta, Utc};
use fastrand::Rng;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{ControlPlane, Operator, Options, Outcome, Pipeline, WfeBuilder, World, rights_of_people, wfe};

use super::{Caller, in_system, outputs, pause};
use crate::expect::{condition, text, unwritten};
use crate::history::past::{Past, past};
use crate::leader::{await_leading, quick};
use crate::refused::await_unready;

/// The numbers of the stories of each book: with settings in a `ConfigMap`, in a paused namespace, with a leader that
/// is killed or frozen, and without Tekton.
const CONFIGURED: Range<usize> = 0..30;
const PAUSED: Range<usize> = 30..35;
const KILLED: Range<usize> = 35..40;
const FROZEN: Range<usize> = 40..45;
const WITHOUT_TEKTON: Range<usize> = 45..50;
/// One of this many targets is busy.
const BUSY: usize = 15;
/// The cooldown of the operators whose settings are not the default. Most of the ages are longer than the default.
const COOLDOWN: &str = "20m";
/// The possible ages of past executions, in minutes.
const AGES: [i64; 9] = [1, 2, 7, 9, 15, 40, 90, 600, 6000];
/// The possible backoffs of a target, in minutes.
const WAITS: [i64; 5] = [1, 4, 8, 20, 1000];
const WORKFLOWS: [&str; 3] = ["w1", "w2", "w3"];
/// The number of calls of the tool that run at the same time.
const AT_ONCE: usize = 6;

/// A target, its past executions, and the new execution.
struct Story {
    name: String,
    past: Vec<Chapter>,
    is_busy: bool,
    asks: WfeBuilder,
}

/// An ended execution.
struct Chapter {
    name: String,
    workflow: &'static str,
    age: i64,
    how: Past,
    is_cleared: bool,
}

impl Story {
    fn target(&self) -> String {
        format!("node/{}", self.name)
    }
}

/// Returns the last executions of a history. Every run of the test has all kinds of them, which together lead to every
/// possible answer. The earlier executions are random.
fn tail(kind: usize, rng: &mut Rng) -> Vec<(i64, Past, bool)> {
    let completed = (600, Past::Completed, false);
    let nothing_ran = |age: i64, nth: u32| (age, Past::NothingRan(nth, TimeDelta::minutes(1000)), false);
    let in_a_row = || (1..=5).map(|nth| nothing_ran(40 - i64::from(nth), nth));
    match kind {
        0 => [completed].into_iter().chain(in_a_row()).collect(),
        1 => vec![completed, nothing_ran(2, 1)],
        2 => vec![(1, Past::Completed, false)],
        3 => vec![(rng.i64(2..100), Past::Ran, false)],
        4 => vec![(rng.i64(2..100), Past::Ran, true)],
        5 => {
            let mut exhausted: Vec<_> = in_a_row().collect();
            exhausted[rng.usize(2..5)].2 = true;
            exhausted
        }
        _ => vec![],
    }
}

/// The number of kinds of last executions. Half of the stories have no such executions.
const TAILS: usize = 6;

fn story(world: &World, nth: usize, image: &str, rng: &mut Rng) -> Story {
    let name = format!("h{nth}");
    let kind = if nth.is_multiple_of(2) { nth / 2 % TAILS } else { TAILS };
    let tail = tail(kind, rng);
    let oldest = tail.first().map_or(0, |(age, ..)| *age);
    let mut ages: Vec<i64> =
        (0..rng.usize(0..6)).filter_map(|_| rng.choice(AGES)).filter(|age| *age > oldest).collect();
    ages.sort_unstable_by(|a, b| b.cmp(a));
    let head: Vec<_> = ages.into_iter().map(|age| (age, how(age, rng), rng.u8(0..4) == 0)).collect();
    let past: Vec<Chapter> = head
        .into_iter()
        .chain(tail)
        .enumerate()
        .map(|(place, (age, how, is_cleared))| {
            let workflow = if kind == 2 { "w1" } else { rng.choice(WORKFLOWS).unwrap_or("w1") };
            let is_cleared = is_cleared && !matches!(how, Past::Completed);
            Chapter { name: format!("{name}-{place}"), workflow, age, how, is_cleared }
        })
        .collect();
    let workflow = if kind == 2 { "w1" } else { rng.choice(WORKFLOWS).unwrap_or("w1") };
    // A recovery of a blocking execution may run. Kind 3 is the only one that always ends with a block.
    let recovers = kind != 3 && rng.bool();
    let recovered = rng.choice(&past).filter(|_| recovers).map(|chapter| chapter.name.clone());
    let start_before = (nth % 11 == 10).then(|| Utc::now() - TimeDelta::minutes(rng.i64(2..100)));
    let asks = world.wfe(&format!("{name}-asks")).target(&format!("node/{name}")).workflow(workflow).image(image);
    let asks = asks.patch(|wfe| {
        if let Some(recovered) = recovered {
            wfe["spec"]["recoveryOf"] = json!(recovered);
        }
        if let Some(start_before) = start_before {
            wfe["spec"]["startBefore"] = json!(start_before.to_rfc3339());
        }
    });
    Story { name, past, is_busy: nth % BUSY == 7, asks }
}

fn how(age: i64, rng: &mut Rng) -> Past {
    match rng.u8(0..5) {
        0 | 1 => Past::Completed,
        2 => Past::Ran,
        _ => {
            let waits: Vec<i64> = WAITS.into_iter().filter(|wait| *wait < age || *wait >= age + 3).collect();
            Past::NothingRan(1, TimeDelta::minutes(rng.choice(waits).unwrap_or(1000)))
        }
    }
}

/// Writes the past executions and their clearances, whose effect no operator has recorded yet.
async fn write(world: &World, story: &Story) -> Result<()> {
    let executions = world.api(&wfe::resource(), world.namespace());
    for (place, Chapter { name, workflow, age, how, is_cleared }) in story.past.iter().enumerate() {
        // The first number of the chain is reserved for the holder.
        let number = u64::try_from(place)? + 2;
        past(world, name, &story.target(), workflow, number, TimeDelta::minutes(*age), *how).await?;
        if *is_cleared {
            let clearance = json!({"spec": {"clearance": {"reason": "looked at it", "clearedBy": "jo@example.com"}}});
            executions.patch(name, &PatchParams::default(), &Patch::Merge(&clearance)).await?;
        }
    }
    Ok(())
}

/// Asks the tool about the new execution. The exit code must be one of these. Returns both outputs.
async fn explained(caller: &Caller<'_>, story: &Story, codes: &[i32]) -> Result<(String, String)> {
    let file = caller.kubeconfig.with_file_name(format!("{}.json", story.name));
    fs::write(&file, story.asks.json().to_string())?;
    outputs(caller.command(&["explain", "-o", "json", "-f", &file.to_string_lossy()])?, codes).await
}

/// Returns the tool's prediction for the new execution.
async fn foretold(caller: &Caller<'_>, story: &Story) -> Result<Value> {
    Ok(serde_json::from_str(&explained(caller, story, &[0, 1]).await?.0)?)
}

/// Returns the operator's decision in the form of a prediction: verdict, reason, message, and the execution that caused
/// a skip. `None` while the execution is undecided.
fn done(wfe: &Value) -> Option<[String; 4]> {
    let status = &wfe["status"];
    let words = |verdict: &str, reason: &Value, message: &Value, name: &Value| {
        Some([verdict, text(reason), text(message), text(name)].map(str::to_owned))
    };
    let (skip, failure, none) = (&status["skipDetails"], &status["failureDetails"], &Value::Null);
    if status["pipelineRunRef"].is_object() {
        return words("Run", none, none, none);
    }
    match text(&status["phase"]) {
        "Skipped" => {
            let holder = &skip["conflictingWorkflow"]["name"];
            let name = if holder.is_string() { holder } else { &skip["recentRemediation"]["name"] };
            words("Skip", &skip["reason"], &skip["message"], name)
        }
        "Failed" => words("Fail", &failure["reason"], &failure["message"], none),
        _ => {
            let waiting = condition(wfe, "Waiting");
            let reason = waiting.strip_prefix("True ").filter(|reason| *reason == "Paused")?;
            let all = status["conditions"].as_array()?;
            let message = &all.iter().find(|condition| condition["type"] == "Waiting")?["message"];
            words("Wait", &json!(reason), message, none)
        }
    }
}

fn said(report: &Value) -> [String; 4] {
    [&report["verdict"], &report["reason"], &report["message"], &report["inTheWay"]["name"]]
        .map(|it| text(it).to_owned())
}

/// A namespace with its stories.
struct Book<'w> {
    world: &'w World,
    stories: Vec<Story>,
    foretold: Vec<Value>,
}

impl<'w> Book<'w> {
    async fn write(world: &'w World, numbers: Range<usize>, rng: &mut Rng) -> Result<Self> {
        let image = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await?;
        Self::of(world, numbers, &image, rng).await
    }

    async fn of(world: &'w World, numbers: Range<usize>, image: &str, rng: &mut Rng) -> Result<Self> {
        let stories: Vec<Story> = numbers.map(|nth| story(world, nth, image, rng)).collect();
        hold(world, &stories).await?;
        let written = stream::iter(&stories).map(|story| write(world, story)).buffer_unordered(AT_ONCE);
        written.try_collect::<()>().await?;
        Ok(Self { world, stories, foretold: Vec::new() })
    }

    async fn foretell(&self, reader: &Caller<'_>) -> Result<Vec<Value>> {
        stream::iter(&self.stories).map(|story| foretold(reader, story)).buffered(AT_ONCE).try_collect().await
    }

    async fn create(&self) -> Result<()> {
        for story in &self.stories {
            story.asks.create().await?;
        }
        Ok(())
    }

    /// Foretells while no operator runs, for a caller with all rights. Returns the operator that then decides.
    async fn play(&mut self) -> Result<Operator> {
        let reader = Caller::new(self.world, "reader", &["wfe-explain"]).await?;
        self.foretold = self.foretell(&reader).await?;
        self.create().await?;
        self.world.operator().start().await
    }

    /// Foretells while a leader leads, for a caller who may not get the `ConfigMap`, and then ends the leader by `end`.
    /// Until another leads, what would run must be said to wait. Returns the replica that takes over.
    async fn play_with_leaders(&mut self, end: impl AsyncFnOnce(Operator) -> Result<()>) -> Result<Operator> {
        let rights = rights_of_people("wfe-explain")?;
        let lacked = rights.iter().find(|right| right.resource == "configmaps");
        ensure!(lacked.is_some(), "the role wfe-explain does not give the right to get the ConfigMap");
        let kubeconfig = self.world.person("reader", &["wfe-explain"], lacked).await?;
        let reader = Caller { world: self.world, kubeconfig };
        let replica = |name: &str| quick(self.world.operator().replica(name)).arg("--cooldown-period", COOLDOWN);

        let leader = replica("replica-0").start().await?;
        await_leading(&leader).await?;
        self.foretold = self.foretell(&reader).await?;
        end(leader).await?;
        let ask = async || foretold(&reader, &self.stories[0]).await;
        let nobody = |said: &Value| text(&said["operator"]).starts_with("no operator leads");
        ask_until(DEADLINE, "explain knows that nobody leads", ask, nobody).await?;
        for (now, of_leader) in self.foretell(&reader).await?.iter().zip(&self.foretold) {
            let waits = (&now["verdict"], &now["reason"]) == (&json!("Wait"), &json!("NoOperator"));
            let is_right = if of_leader["verdict"] == "Run" { waits } else { said(now) == said(of_leader) };
            ensure!(is_right, "nobody leads: {now:#}\nbut a leader led: {of_leader:#}");
        }
        self.create().await?;
        replica("replica-1").start().await
    }

    /// Waits until all executions are decided. Counts the answers, and returns the differences.
    async fn compare(&self, counts: &mut BTreeMap<String, usize>) -> Result<Vec<String>> {
        let asks = |story: &Story| format!("{}-asks", story.name);
        let wfes = self.world.await_wfes("that all who ask are decided", |wfes| {
            self.stories.iter().all(|story| wfes.get(&asks(story)).and_then(done).is_some())
        });
        let wfes = wfes.await?;
        let mut differences = Vec::new();
        for (story, report) in self.stories.iter().zip(&self.foretold) {
            let wfe = &wfes[&asks(story)];
            let (foretold, done) = (said(report), done(wfe).context("undecided after all")?);
            *counts.entry(format!("{} {}", done[0], done[1])).or_default() += 1;
            if foretold != done {
                let of_target = wfes.values().filter(|it| it["spec"]["targetResource"] == story.target());
                let shown: Vec<&Value> = of_target.collect();
                differences.push(format!("{foretold:?}\nbut {done:?}\n{report:#}\n{shown:#?}"));
            }
        }
        Ok(differences)
    }
}

/// Asserts that each execution of these books was decided as foretold. Returns how often each answer was given.
async fn assert_came_true(books: [&Book<'_>; 2]) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    let mut differences = Vec::new();
    for book in books {
        differences.extend(book.compare(&mut counts).await?);
    }
    println!("{counts:#?}");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(counts)
}

/// Lets an operator start an execution on each busy target, and then stops this operator.
async fn hold(world: &World, stories: &[Story]) -> Result<()> {
    let busy: Vec<&Story> = stories.iter().filter(|story| story.is_busy).collect();
    if busy.is_empty() {
        return Ok(());
    }
    let holds = world.push_pipeline("hold", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().start().await?;
    for story in &busy {
        let holder = format!("{}-holder", story.name);
        world.wfe(&holder).target(&story.target()).workflow("holder").image(&holds).create().await?;
    }
    for story in &busy {
        world.await_phase(&format!("{}-holder", story.name), "Running").await?;
    }
    operator.terminate().await?;
    Ok(())
}

/// Returns the source of the random histories, and prints its seed.
fn seeded() -> Result<Rng> {
    let seed = match std::env::var("WFE_HISTORIES_SEED") {
        Ok(seed) => seed.parse().context("WFE_HISTORIES_SEED")?,
        Err(_) => fastrand::u64(..),
    };
    println!("WFE_HISTORIES_SEED={seed}");
    Ok(Rng::with_seed(seed))
}

#[tokio::test]
async fn what_is_foretold_is_what_an_operator_then_does() -> Result<()> {
    let mut rng = seeded()?;
    let (open, paused) = (World::new("foretold").await?, World::new("foretold-paused").await?);
    let settings = json!({"cooldown-period": COOLDOWN, "max-consecutive-failures": "3"});
    open.apply(&in_system(&open, "v1", "ConfigMap", "workflowexecution-config", "data", &settings)).await?;
    let mut first = Book::write(&open, CONFIGURED, &mut rng).await?;
    let mut second = Book::write(&paused, PAUSED, &mut rng).await?;
    pause(&paused, "upgrade; ask jo").await?;
    let _operators = (first.play().await?, second.play().await?);
    let counts = assert_came_true([&first, &second]).await?;
    for answer in [
        "Run ",
        "Skip ResourceBusy",
        "Skip PreviousExecutionFailed",
        "Skip ExhaustedRetries",
        "Skip RecentlyRemediated",
        "Fail DeadlineExceeded",
        "Wait Paused",
    ] {
        assert!(counts.contains_key(answer), "nobody got {answer:?}: {counts:?}");
    }
    open.close().await?;
    paused.close().await
}

#[tokio::test]
async fn what_is_foretold_holds_when_another_replica_leads() -> Result<()> {
    let mut rng = seeded()?;
    let (first, second) = (World::new("foretold-killed").await?, World::new("foretold-frozen").await?);
    let mut killed = Book::write(&first, KILLED, &mut rng).await?;
    let mut frozen = Book::write(&second, FROZEN, &mut rng).await?;
    let mut sleeper = None;
    let freeze = async |leader: Operator| {
        leader.pause()?;
        sleeper = Some(leader);
        Ok(())
    };
    let plays = tokio::join!(killed.play_with_leaders(Operator::kill), frozen.play_with_leaders(freeze));
    let _operators = (plays.0?, plays.1?);
    assert_came_true([&killed, &frozen]).await?;
    drop(sleeper);
    first.close().await?;
    second.close().await
}

#[tokio::test]
async fn without_tekton_nothing_is_foretold_and_nothing_is_decided() -> Result<()> {
    let control_plane = ControlPlane::start(Options { crd: true, ..Options::BARE }).await?;
    let world = World::on(&control_plane, "foretold-nothing").await?;
    let book = Book::of(&world, WITHOUT_TEKTON, "registry.example.com/short:1", &mut seeded()?).await?;
    let reader = Caller::new(&world, "reader", &["wfe-explain"]).await?;
    for story in &book.stories {
        let (_, said) = explained(&reader, story, &[2]).await?;
        assert!(said.contains("Tekton Pipelines is not installed"), "{said}");
    }
    book.create().await?;
    let operator = world.operator().spawn().await?;
    let said = await_unready(&operator, "pipelineruns").await;
    assert!(said.contains("install Tekton"), "{said}");
    for story in &book.stories {
        assert_eq!(world.get_wfe(&format!("{}-asks", story.name)).await?["status"], unwritten());
    }
    world.close().await
}
