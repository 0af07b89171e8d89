//! A crowd: many executions in one namespace, on a few targets (section 17). While other namespaces have work, the
//! operator sends no more requests at once for the crowd than one namespace may have. Single executions in another
//! namespace do not wait for the crowd.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::{BTreeMap, HashMap};

use wfe_simulation::plan::{Act, Create, Millis, Operation, Plan};
use wfe_simulation::world::{How, play};

/// The number of targets of the crowd, and the number of executions on each of them.
const TARGETS: usize = 12;
const RIVALS: usize = 30;
/// When the other namespace begins to create single executions. The operator has already led for a while.
const BEGIN: Millis = 20_000;
/// The number of single executions, which are created at regular intervals.
const SINGLES: u64 = 10;
const EVERY: Millis = 40;
/// When the crowd is created. The other namespace already has work.
const CROWD: Millis = BEGIN + 100;
/// The most requests at once for the crowd while other namespaces have work. Answers take from two to 22 milliseconds
/// here. The operator's limit per namespace begins at this number, and has no reason to rise.
const PLACES: usize = 4;
/// The time over which the crowd's requests are counted. A request and its answer take at least two milliseconds, so
/// each place sends at most twelve requests within this time.
const WINDOW: Millis = 24;
const MOST: usize = PLACES * 12;
/// The time within which a new execution must have its run. Its delivery and each of its requests take up to 35
/// milliseconds.
const WITHIN: Millis = 150;

fn create(at: Millis, name: String, target: String) -> Act {
    let (workflow, story) = ("cleanup".to_owned(), "success".to_owned());
    Act { at, what: Operation::Create(Create { name, target, workflow, story, ..Create::default() }) }
}

#[test]
fn a_crowd_on_few_targets_sends_no_more_requests_than_its_places_let_it() {
    let rival = |number: usize| create(CROWD, format!("ops/rival-{number}"), format!("node/busy-{}", number % TARGETS));
    let single = |number: u64| {
        create(BEGIN + number * EVERY, format!("payment/single-{number}"), format!("node/single-{number}"))
    };
    let plan = Plan {
        seed: 1,
        replicas: 1,
        flags: Vec::new(),
        tekton: "v1.12.0".to_owned(),
        acts: (0..TARGETS * RIVALS).map(rival).chain((0..SINGLES).map(single)).collect(),
        faults: Vec::new(),
    };
    let outcome = play(&plan, How { lines: true }).unwrap();
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);

    let mut sent: BTreeMap<Millis, usize> = BTreeMap::new();
    let mut runs: HashMap<u64, Millis> = HashMap::new();
    for line in &outcome.lines {
        let mut words = line.splitn(5, ' ');
        let at: Millis = words.next().unwrap().parse().unwrap();
        let (method, uri, body) = (words.nth(1).unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
        if uri.contains("/namespaces/ops/workflowexecutions/") {
            *sent.entry(at).or_default() += 1;
        }
        if method == "POST" && uri.contains("/pipelineruns") {
            let of = (0..SINGLES).find(|number| body.contains(&format!("\"single-{number}\"")));
            runs.extend(of.map(|number| (number, at)));
        }
    }
    let within = |from: Millis| sent.range(from..from + WINDOW).map(|(_, sent)| sent).sum::<usize>();
    let most = sent.keys().map(|from| within(*from)).max().unwrap_or_default();
    assert!((1..=MOST).contains(&most), "{most} requests of the crowd within {WINDOW} ms");
    for number in 0..SINGLES {
        let waited = runs[&number] - (BEGIN + number * EVERY);
        assert!(waited <= WITHIN, "single-{number} has waited {waited} ms for its run");
    }
}
