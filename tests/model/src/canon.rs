//! Gives all states with the same future the same form.
//!
//! Three things are removed: events that all operators have seen, deleted runs to which nothing refers, and the
//! identity of the operators.

use crate::cluster::{Awaited, Event};
use crate::model::State;
use crate::object::{Kind, Phase, Residue, Run, RunUid};
use crate::operator::{Life, Operator};
use crate::request::{Fact, Premise, Request, StatusWrite, Step};

impl State {
    /// Brings the state into the common form.
    pub(crate) fn settle(&mut self) {
        self.cluster.forget();
        self.forget_events();
        self.forget_runs();
        self.operators.sort();
        self.wire.sort_unstable();
    }

    fn forget_events(&mut self) {
        for kind in Kind::ALL {
            let needs = |operator: &&Operator| match operator.life {
                Life::Down => false,
                Life::Listing => kind != Kind::Run,
                Life::Up => true,
            };
            let seen = self.operators.iter().filter(needs).map(|operator| operator.seen[kind as usize]).min();
            let seen = seen.unwrap_or(self.cluster.events(kind));
            self.cluster.forget_events(kind, seen);
            for operator in &mut self.operators {
                let count = &mut operator.seen[kind as usize];
                *count = count.saturating_sub(seen);
            }
        }
    }

    /// Removes the uids to which nothing refers, and renumbers the others in the same order.
    fn forget_runs(&mut self) {
        let mut used = vec![false; self.cluster.runs.len()];
        for (uid, created) in self.cluster.runs.iter().enumerate() {
            used[uid] = created.object.is_some() || created.residue.is_some();
        }
        self.each_uid(&mut |uid| used[usize::from(uid.0)] = true);
        if used.iter().all(|used| *used) {
            return;
        }
        let mut next = 0;
        let places: Vec<u8> = used
            .iter()
            .map(|used| {
                let place = next;
                next += u8::from(*used);
                place
            })
            .collect();
        let mut at = used.iter();
        self.cluster.runs.retain(|_| at.next().copied().unwrap_or(true));
        self.each_uid(&mut |uid| uid.0 = places[usize::from(uid.0)]);
    }

    /// Calls a function for each occurrence of a run's uid in the state.
    fn each_uid(&mut self, visit: &mut impl FnMut(&mut RunUid)) {
        let cluster = &mut self.cluster;
        for created in &mut cluster.runs {
            if let Some(run) = &mut created.object {
                visit(&mut run.uid);
            }
            if let Some(residue) = &mut created.residue {
                visit(&mut residue.run);
            }
        }
        for made in &mut cluster.executions {
            if let Some(object) = &mut made.object {
                visit_phase(&mut object.phase, visit);
            }
        }
        for event in &mut cluster.execution_events {
            if let Event::Applied(object) = event {
                visit_phase(&mut object.phase, visit);
            }
        }
        for event in &mut cluster.run_events {
            match event {
                Event::Applied(Run { uid, .. }) => visit(uid),
                Event::Deleted(uid) => visit_bare(uid, visit),
            }
        }
        for event in &mut cluster.residue_events {
            match event {
                Event::Applied(Residue { run, .. }) => visit(run),
                Event::Deleted(uid) => visit_bare(uid, visit),
            }
        }
        for operator in &mut self.operators {
            for object in &mut operator.view.executions {
                visit_phase(&mut object.phase, visit);
            }
            for seen in &mut operator.view.runs {
                visit(&mut seen.run.uid);
            }
            for run in operator.view.listing.iter_mut().flat_map(|listing| &mut listing.all) {
                visit(&mut run.uid);
            }
            for residue in &mut operator.view.residue {
                visit(&mut residue.run);
            }
            for awaited in &mut operator.awaits {
                if let Awaited::Run(run, _) | Awaited::NoRun(run) = awaited {
                    visit(run);
                }
            }
            for step in &mut operator.task {
                visit_step(step, visit);
            }
        }
        for request in &mut self.wire {
            visit_request(request, visit);
        }
    }
}

fn visit_bare(uid: &mut u8, visit: &mut impl FnMut(&mut RunUid)) {
    let mut run = RunUid(*uid);
    visit(&mut run);
    *uid = run.0;
}

fn visit_phase(phase: &mut Phase, visit: &mut impl FnMut(&mut RunUid)) {
    if let Phase::Running(run) = phase {
        visit(run);
    }
}

fn visit_step(step: &mut Step, visit: &mut impl FnMut(&mut RunUid)) {
    match step {
        Step::Write(premise, request) => {
            if let Premise::RunGone(run) = premise {
                visit(run);
            }
            visit_request(request, visit);
        }
        Step::ReadOwner(_) => {}
        Step::ReadFirst { request, .. } => visit_request(request, visit),
        Step::ReadFact { fact, .. } => visit_fact(fact, visit),
    }
}

fn visit_request(request: &mut Request, visit: &mut impl FnMut(&mut RunUid)) {
    match request {
        Request::Create { .. }
        | Request::Status { write: StatusWrite::Freed | StatusWrite::GiveUp(_) | StatusWrite::Retry { .. }, .. } => {}
        Request::Status { write: StatusWrite::Commit { run, .. }, .. }
        | Request::Release { run, .. }
        | Request::Delete { run, .. }
        | Request::Cancel { run, .. } => visit(run),
        Request::Status { write: StatusWrite::Skip(fact), .. } => visit_fact(fact, visit),
        Request::Status { write: StatusWrite::Finish { phase, .. }, .. } => visit_phase(phase, visit),
    }
}

fn visit_fact(fact: &mut Fact, visit: &mut impl FnMut(&mut RunUid)) {
    match fact {
        Fact::Unfinished(run) | Fact::Draining(run) => visit(run),
        Fact::Holds(_) => {}
    }
}
