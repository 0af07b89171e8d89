//! The knowledge of one operator: what the watches delivered, and what it learnt from its requests.
//!
//! The view follows the operator's index, for one target.

use crate::cluster::{Awaited, Cluster, Event};
use crate::object::{Execution, ExecutionId, Number, Phase, Residue, Run};
use crate::request::OwnerRead;

/// A run as an operator has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seen {
    /// The object.
    pub run: Run,
    /// The position of the run in the order of creation. Runs that were new in the same list have the same position.
    pub place: u8,
    /// Whether the run's owner is proven to be gone.
    pub orphan: bool,
}

/// A list of runs that arrives one object at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listing {
    /// The position of all runs that are new in the list.
    pub place: u8,
    /// All runs in the list.
    pub all: Vec<Run>,
    /// How many of the runs have arrived. They arrive in the order of their names.
    pub delivered: usize,
}

/// The view of one operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View {
    /// The namespace whose executions the operator watches; `None` for all namespaces.
    pub watches: Option<u8>,
    /// What the operator has read of owners in other namespaces.
    pub elsewhere: Vec<(ExecutionId, OwnerRead)>,
    /// The executions that the operator has seen, by uid.
    pub executions: Vec<Execution>,
    /// The runs that the operator has seen, by uid. This is also the order of their positions.
    pub runs: Vec<Seen>,
    /// The remains of runs that the operator has seen.
    pub residue: Vec<Residue>,
    /// The list of runs that is still arriving.
    pub listing: Option<Listing>,
    /// The refused creates, each with its execution, attempt and number. Only this process remembers them.
    pub refused: Vec<(ExecutionId, u8, Number)>,
    /// The undecided executions whose run the operator has seen disappear. They are a set of uids.
    pub had_runs: u8,
    /// The highest number whose name belongs to an object that the watch does not show.
    pub highest_taken: Number,
}

impl View {
    /// Applies the first lists of executions and of the remains of runs.
    pub fn list_others(&mut self, cluster: &Cluster) {
        let watches = self.watches;
        let is_watched = |found: &&Execution| watches.is_none_or(|namespace| namespace == found.id.namespace());
        self.executions = cluster.existing().filter(is_watched).copied().collect();
        self.residue = cluster.residue().copied().collect();
    }

    /// Applies a list of runs. New runs share a position, and runs that are not in the list are gone.
    pub fn list_runs(&mut self, cluster: &Cluster) {
        let place = self.next_place();
        for run in cluster.existing_runs() {
            self.insert_run(*run, place);
        }
        self.keep_runs(|run| cluster.run(run.uid).is_some());
        self.tidy();
    }

    /// Begins a list of runs that arrives one object at a time.
    pub fn begin_list(&mut self, cluster: &Cluster) {
        let mut all: Vec<Run> = cluster.existing_runs().copied().collect();
        all.sort_unstable_by_key(|run| run.number);
        self.listing = Some(Listing { place: self.next_place(), all, delivered: 0 });
    }

    /// Applies the next object of the current list, or its end. Returns whether there is a current list.
    pub fn go_on_listing(&mut self) -> bool {
        let Some(listing) = &mut self.listing else { return false };
        let (next, place) = (listing.all.get(listing.delivered).copied(), listing.place);
        listing.delivered += 1;
        if let Some(run) = next {
            self.insert_run(run, place);
        } else if let Some(listing) = self.listing.take() {
            self.keep_runs(|run| listing.all.iter().any(|listed| listed.uid == run.uid));
            self.tidy();
        }
        true
    }

    /// Applies one event of the watch of executions.
    pub fn see_execution(&mut self, event: &Event<Execution>) {
        match *event {
            Event::Applied(object) if self.is_elsewhere(object.id) => {}
            Event::Applied(object) => {
                match self.executions.binary_search_by_key(&object.id.uid, |known| known.id.uid) {
                    Ok(at) => self.executions[at] = object,
                    Err(at) => self.executions.insert(at, object),
                }
            }
            // No watch reports the deletion of an execution in another namespace. `orphan` ignores it.
            Event::Deleted(uid) => {
                self.executions.retain(|known| known.id.uid != uid);
                self.orphan(1 << uid);
            }
        }
        self.tidy();
    }

    /// Applies one event of the watch of runs.
    pub fn see_run(&mut self, event: &Event<Run>) {
        match *event {
            Event::Applied(run) => {
                let place = self.next_place();
                self.insert_run(run, place);
            }
            Event::Deleted(uid) => self.keep_runs(|run| run.uid.0 != uid),
        }
        self.tidy();
    }

    /// Applies one event of the watch of the remains of runs.
    pub fn see_residue(&mut self, event: &Event<Residue>) {
        match *event {
            Event::Applied(residue) => {
                self.residue.push(residue);
                self.residue.sort_unstable();
                self.residue.dedup();
            }
            Event::Deleted(run) => self.residue.retain(|residue| residue.run.0 != run),
        }
        self.tidy();
    }

    /// Records that the owners in this set are gone.
    pub fn orphan(&mut self, owners: u8) {
        let watches = self.watches;
        let is_watched = |owner: ExecutionId| watches.is_none_or(|namespace| namespace == owner.namespace());
        for seen in &mut self.runs {
            seen.orphan |= seen.run.owner.is_some_and(|owner| owners & owner.bit() != 0 && is_watched(owner));
        }
    }

    /// Returns whether an execution is in a namespace that no watch of the operator delivers.
    #[must_use]
    pub fn is_elsewhere(&self, id: ExecutionId) -> bool {
        self.watches.is_some_and(|namespace| namespace != id.namespace())
    }

    /// Records what was read of an owner in another namespace. Returns whether this is new.
    pub fn read_owner(&mut self, owner: ExecutionId, found: OwnerRead) -> bool {
        let before = self.elsewhere.clone();
        self.elsewhere.retain(|(known, _)| *known != owner);
        self.elsewhere.push((owner, found));
        self.elsewhere.sort_unstable();
        self.elsewhere != before
    }

    /// Returns whether the view shows the result of an own write.
    #[must_use]
    pub fn holds(&self, awaited: Awaited) -> bool {
        match awaited {
            Awaited::Execution(id, version) => {
                self.executions.iter().any(|known| known.id == id && known.version >= version)
            }
            Awaited::Run(uid, version) => {
                self.runs.iter().any(|seen| seen.run.uid == uid && seen.run.version >= version)
            }
            Awaited::NoRun(uid) => !self.runs.iter().any(|seen| seen.run.uid == uid),
        }
    }

    fn keep_runs(&mut self, is_there: impl Fn(&Run) -> bool) {
        for gone in self.runs.extract_if(.., |seen| !is_there(&seen.run)) {
            self.had_runs |= gone.run.owner.map_or(0, ExecutionId::bit);
        }
    }

    fn insert_run(&mut self, run: Run, place: u8) {
        match self.runs.binary_search_by_key(&run.uid, |seen| seen.run.uid) {
            Ok(at) => self.runs[at].run = run,
            Err(at) => self.runs.insert(at, Seen { run, place, orphan: false }),
        }
    }

    fn next_place(&self) -> u8 {
        self.runs.last().map_or(0, |last| last.place + 1)
    }

    /// Removes what the operator's index would remove. Renumbers positions from 0, because only their order matters.
    fn tidy(&mut self) {
        let executions = &self.executions;
        let waits = |known: &Execution| known.waits || known.phase == Phase::Undecided;
        self.refused.retain(|(id, attempts, _)| {
            executions.iter().any(|known| known.id == *id && known.attempts == *attempts && waits(known))
        });
        let runs = &self.runs;
        self.elsewhere.retain(|(owner, _)| runs.iter().any(|seen| seen.run.owner == Some(*owner)));
        let undecided = executions.iter().filter(|known| known.phase == Phase::Undecided);
        self.had_runs &= undecided.fold(0, |all, known| all | known.id.bit());
        if self.executions.is_empty() && self.runs.is_empty() && self.residue.is_empty() {
            self.highest_taken = 0;
        }
        if self.listing.is_some() {
            return;
        }
        let (mut place, mut last) = (0, self.runs.first().map_or(0, |seen| seen.place));
        for seen in &mut self.runs {
            if seen.place != last {
                last = seen.place;
                place += 1;
            }
            seen.place = place;
        }
    }
}
