//! The scope of a circuit: the namespaces that it holds, and what the others do to it (ADR 15).

use super::*;

/// An event of an execution in a namespace.
fn of(namespace: &str, event: Event) -> Event {
    Event { namespace: namespace.into(), ..event }
}

/// The targets 1 to 5 fail at the seconds 1 to 5, each in one of these namespaces: the circuit opens at 5.
fn outage_in(namespaces: [&str; 5]) -> Vec<Event> {
    outage().into_iter().zip(namespaces).map(|(event, namespace)| of(namespace, event)).collect()
}

/// Five targets of one namespace fail, and then something else happens.
fn outage_and(more: impl IntoIterator<Item = Event>) -> Vec<Event> {
    outage_in(["a"; 5]).into_iter().chain(more).collect()
}

/// Twenty targets of these namespaces in turn fail at second 10, each for a reason of its own.
fn all_fail_in(namespaces: &[&str]) -> Vec<Event> {
    let all = (0..20).zip(namespaces.iter().cycle());
    let failed = |n: u64| ended(10, n, 0, End::FailedBefore(Some(set_up(&n.to_string()))));
    all.map(|(n, namespace)| of(namespace, Event { uid: Uid::new(&format!("{n:04}")), ..failed(n) })).collect()
}

/// What each circuit holds that is open at a second.
fn scopes(events: impl IntoIterator<Item = Event>, second: i64) -> Vec<String> {
    fold(events).seen(at(second)).0.iter().map(|circuit| circuit.scope.to_string()).collect()
}

#[test]
fn a_circuit_holds_the_namespaces_whose_failures_opened_it() {
    for (what, events, expected) in [
        ("one", outage_in(["a"; 5]), "namespace a"),
        ("three, in the order of their names", outage_in(["c", "a", "c", "b", "a"]), "namespaces a, b, c"),
        ("four", outage_in(["a", "b", "c", "d", "d"]), "namespaces a, b, c, d"),
        ("five agree", outage_in(["a", "b", "c", "d", "e"]), "all namespaces"),
        (
            "the newest failure of each target counts",
            [vec![of("z", pulls(0, 1))], outage_in(["b", "a", "a", "a", "a"])].concat(),
            "namespaces a, b",
        ),
        (
            "what has left the window does not count",
            [vec![of("z", pulls(-400, 9))], outage_in(["a"; 5])].concat(),
            "namespace a",
        ),
    ] {
        assert_eq!(scopes(events, 5), [expected], "{what}");
    }
    let many =
        Policy { circuits: CircuitPolicy { outage_targets: 7, ..CircuitPolicy::default() }, ..Policy::default() };
    let events = (1..=7).map(|n| of(&format!("ns{n}"), pulls(n, n.unsigned_abs())));
    let scope = Fold::of(&many, events).seen(at(7)).0.remove(0).scope;
    assert_eq!(
        (scope.to_string(), scope.since("ns7"), scope.since("x")),
        ("all namespaces".into(), Some(at(7)), Some(at(7)))
    );
}

#[test]
fn the_circuit_of_all_holds_the_namespaces_of_the_targets_that_failed_last() {
    let well = |namespace: &str, n: u64| of(namespace, succeeds(9, n, 0));
    let healed = (0..5).map(|n| of("z", ended(8, n, 0, End::FailedAfter)));
    for (what, events, expected) in [
        ("one", all_fail_in(&["a"]), "namespace a"),
        ("two", all_fail_in(&["b", "a"]), "namespaces a, b"),
        ("five", all_fail_in(&["e", "d", "c", "b", "a"]), "all namespaces"),
        ("seven", all_fail_in(&["a", "b", "c", "d", "e", "f", "g"]), "all namespaces"),
        ("those that succeed are not held", [vec![well("z", 90)], all_fail_in(&["a"])].concat(), "namespace a"),
        ("nor is where a target failed before", healed.chain(all_fail_in(&["a"])).collect(), "namespace a"),
    ] {
        assert_eq!(scopes(events, 10), [expected], "{what}");
    }
}

#[test]
fn another_namespace_is_held_from_its_first_failure_of_that_kind_on() {
    let pulls_in = |namespace: &str, second: i64| of(namespace, pulls(second, 9));
    for (what, more, expected) in [
        ("a failure of its kind", vec![pulls_in("b", 20)], "namespaces a, b"),
        ("two of one namespace", vec![pulls_in("b", 20), pulls_in("b", 21)], "namespaces a, b"),
        (
            "a failure of its kind that began before it opened",
            vec![of("b", ended(20, 9, 0, End::FailedBefore(Some(pull()))))],
            "namespaces a, b",
        ),
        ("another failure", vec![of("b", ended(20, 9, 10, End::FailedBefore(Some(set_up("x")))))], "namespace a"),
        ("a failure after something ran", vec![of("b", ended(20, 9, 10, End::FailedAfter))], "namespace a"),
        ("a success", vec![of("b", succeeds(20, 9, 10))], "namespace a"),
        ("four agree", ["b", "c", "d"].map(|namespace| pulls_in(namespace, 20)).into(), "namespaces a, b, c, d"),
        ("five agree", ["b", "c", "d", "e"].map(|namespace| pulls_in(namespace, 20)).into(), "all namespaces"),
    ] {
        let more = more.into_iter().zip(0..).map(|(event, n)| Event { uid: Uid::new(&format!("{n}")), ..event });
        assert_eq!(scopes(outage_and(more), 30), [expected], "{what}");
    }
    let more = ["b", "c", "d", "e"].into_iter().zip(20..).map(|(namespace, second)| pulls_in(namespace, second));
    let scope = fold(outage_and(more)).seen(at(30)).0.remove(0).scope;
    assert_eq!(["a", "b", "e", "x"].map(|it| scope.since(it)), [5, 20, 23, 23].map(|second| Some(at(second))));
    assert_eq!((scope.namespaces(), scope.has("x")), (None, true));
    // The circuit of all is about any failure.
    let ran = of("b", ended(20, 99, 15, End::FailedAfter));
    assert_eq!(scopes(all_fail_in(&["a"]).into_iter().chain([ran]), 30), ["namespaces a, b"]);
}

#[test]
fn what_ends_in_a_namespace_that_is_not_held_closes_nothing() {
    let well = |namespace: &str| of(namespace, succeeds(20, 9, 10));
    let ran = |namespace: &str| of(namespace, ended(20, 9, 10, End::FailedAfter));
    let fails = |namespace: &str| of(namespace, pulls(12, 8));
    let everybody =
        ["b", "c", "d", "e"].into_iter().zip(12..).map(|(namespace, second)| of(namespace, pulls(second, 8)));
    for (what, more, is_open) in [
        ("a success of its own", vec![well("a")], false),
        ("a success elsewhere", vec![well("b")], true),
        ("something ran elsewhere", vec![ran("b")], true),
        ("a success where it is held by now", vec![fails("b"), well("b")], false),
        ("something ran where it is held by now", vec![fails("b"), ran("b")], false),
        ("a success in a third namespace", vec![fails("b"), well("c")], true),
        ("a success anywhere once all are held", everybody.chain([well("x")]).collect(), false),
    ] {
        assert_eq!(!scopes(outage_and(more), 30).is_empty(), is_open, "{what}");
    }
    let of_all = |event: Event| scopes(all_fail_in(&["a"]).into_iter().chain([event]), 30).len();
    assert_eq!([of_all(of("a", succeeds(20, 99, 11))), of_all(of("b", succeeds(20, 99, 11)))], [0, 1]);
    // What is counted towards an opening is another matter: a success anywhere says that nothing is shared yet.
    let mut events = outage_in(["a"; 5]);
    events.insert(3, of("b", succeeds(3, 9, 0)));
    assert_eq!(scopes(events, 30), [""; 0]);
}

#[test]
fn only_children_of_namespaces_that_are_held_are_probes() {
    let failed = || End::FailedBefore(Some(pull()));
    let all = |namespace: &str, probe: [Event; 2]| probe.map(|event| of(namespace, event)).to_vec();
    let next = |more: Vec<Event>| {
        let circuit = fold(outage_and(more)).seen(at(400)).0.remove(0);
        (circuit.failed_probes, (circuit.next_probe_at - at(0)).num_seconds())
    };
    let widens = || of("b", pulls(50, 9));
    for (what, more, expected) in [
        ("of its own", all("a", probe(1, 70, failed())), (1, 70 + 120)),
        ("it hangs", all("a", probe(1, 70, failed()))[..1].to_vec(), (0, 70 + 60)),
        ("elsewhere", all("b", probe(1, 70, failed())), (0, 65)),
        ("elsewhere, and it hangs", all("b", probe(1, 70, failed()))[..1].to_vec(), (0, 65)),
        ("elsewhere, with another failure", all("b", probe(1, 70, End::FailedBefore(None))), (0, 65)),
        ("where it is held by now", [vec![widens()], all("b", probe(1, 70, failed()))].concat(), (1, 70 + 120)),
        (
            "made before its namespace was held",
            [vec![of("b", pulls(75, 9))], all("b", probe(1, 70, failed())), all("b", probe(2, 71, failed()))].concat(),
            (0, 65),
        ),
    ] {
        assert_eq!(next(more), expected, "{what}");
    }
}

#[test]
fn a_failure_elsewhere_keeps_a_circuit_open() {
    let quiet = 5 + 20 * 60;
    assert_eq!(scopes(outage_and([of("b", pulls(100, 9))]), quiet), ["namespaces a, b"]);
    // A child elsewhere is no probe, and does not.
    let [made, _] = probe(1, 600, End::Succeeded);
    assert_eq!(scopes(outage_and([of("b", made)]), quiet), [""; 0]);
}

#[test]
fn what_a_decision_sees_touches_the_namespaces_that_are_held() {
    let circuits = fold(outage_and([of("b", pulls(10, 9))])).circuits(at(20));
    let (origin, last, quiet) = (origin("r.example"), pull(), 10 + 20 * 60);
    for (namespace, is_touched) in [("a", true), ("b", true), ("c", false)] {
        let touching = |last| circuits.touching(namespace, &origin, last, at(20)).count();
        assert_eq!([touching(None), touching(Some(&last))], [usize::from(is_touched); 2], "{namespace}");
        let closings = circuits.closings(namespace, &origin, None, at(quiet)).count();
        assert_eq!(closings, usize::from(is_touched), "{namespace}, when it is quiet");
    }
    // A failure is shared wherever it ends: by it its namespace is held.
    assert!(circuits.is_open_for(&pull(), at(20)));
    let closed = fold(outage_and([of("b", pulls(10, 9)), of("a", succeeds(30, 8, 20))])).circuits(at(40));
    let closings = |namespace: &str| closed.closings(namespace, &origin, None, at(40)).count();
    assert_eq!(["a", "b", "c"].map(closings), [1, 1, 0]);
}
