//! The searches, each with a setting and the expected finding.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::claim::{Claim, Claims};
use crate::fault::{Budget, Fault};
use crate::leave_out::LeftOut;
use crate::model::{Setting, Stranger};
use crate::trace::{self, Trace};
use crate::translate::{Reads, Translation};

/// One search, from the first state to the last.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The setting.
    pub setting: Setting,
    /// The claim that the search must find broken; `None` if all claims must hold.
    pub breaks: Option<Claim>,
    /// Whether the search takes only seconds, and is an everyday test.
    pub quick: bool,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The number of different states that were visited.
    pub states: usize,
    /// The duration of the search.
    pub took: Duration,
    /// The claim that was broken, and the steps that broke it. The search has then stopped.
    pub broken: Option<(Claim, Trace)>,
}

impl Found {
    /// Returns whether the result is the expected one.
    #[must_use]
    pub fn is_as_expected(&self, search: &Search) -> bool {
        self.broken.as_ref().map(|(claim, _)| *claim) == search.breaks
    }
}

impl Search {
    /// Returns a search in which all claims must hold.
    fn of(executions: usize, operators: usize, faults: &[Fault]) -> Self {
        let setting = Setting {
            executions,
            operators,
            running: 1,
            budget: Budget::of(faults),
            drains: false,
            attempts: 1,
            apart: false,
            judged: Claims::all(),
            stranger: Stranger::None,
            translation: Translation::default(),
        };
        Self { setting, breaks: None, quick: false }
    }

    fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// Makes all operators run from the beginning.
    fn all_running(mut self) -> Self {
        self.setting.running = self.setting.operators;
        self
    }

    /// Makes executions preferred that were created later.
    fn latest_first(mut self) -> Self {
        self.setting.translation.latest_first = true;
        self
    }

    /// Makes the core delete finished runs as soon as it may.
    fn no_retention(mut self) -> Self {
        self.setting.translation.retains_nothing = true;
        self
    }

    /// Makes runs leave pods behind.
    fn drains(mut self) -> Self {
        self.setting.drains = true;
        self
    }

    /// Adds a live read of other runs' remains before a commit.
    fn reads_residue(mut self) -> Self {
        self.setting.translation.reads = Reads::Residue;
        self
    }

    fn stranger(mut self, stranger: Stranger) -> Self {
        self.setting.stranger = stranger;
        self
    }

    fn without(mut self, left_out: LeftOut) -> Self {
        self.setting.translation.left_out = left_out;
        self
    }

    /// Makes each operator watch a namespace of its own.
    fn apart(mut self) -> Self {
        self.setting.apart = true;
        self
    }

    /// Gives executions two attempts.
    fn retries(mut self) -> Self {
        self.setting.attempts = 2;
        self.setting.translation.attempts = 2;
        self
    }

    /// Judges only this claim, which the search must find broken.
    fn breaks(mut self, claim: Claim) -> Self {
        self.setting.judged = Claims::of(&[claim]);
        self.breaks = Some(claim);
        self
    }

    /// Visits all states, or stops when a claim is broken.
    #[must_use]
    pub fn run(&self, threads: usize) -> Found {
        let started = Instant::now();
        let checker =
            self.setting.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let claim = |name: &str| Claim::ALL.into_iter().find(|claim| claim.name() == name);
        let broken = checker
            .discoveries()
            .into_iter()
            .filter_map(|(name, path)| Some((claim(name)?, trace::tell(&self.setting, path))))
            .min_by_key(|(_, trace)| trace.steps.len());
        Found { states: checker.unique_state_count(), took: started.elapsed(), broken }
    }

    /// Returns a short description of the search.
    #[must_use]
    pub fn name(&self) -> String {
        let Setting { executions, operators, running, drains, attempts, apart, stranger, translation, .. } =
            self.setting;
        let mut name = format!("{executions} executions, {operators} operators");
        let mut add = |what: &str| {
            name.push_str(", ");
            name.push_str(what);
        };
        if operators > 1 && running == operators {
            add("both up");
        }
        if translation.latest_first {
            add("latest first");
        }
        if translation.retains_nothing {
            add("no retention");
        }
        if apart {
            add("each with a namespace");
        }
        if attempts > 1 {
            add("two attempts");
        }
        if drains {
            add("pods");
        }
        match translation.reads {
            Reads::Nothing => {}
            Reads::Residue => add("live read of pods"),
        }
        match stranger {
            Stranger::None => {}
            Stranger::Unseen => add("a stranger with a controller"),
            Stranger::Seen => add("a stranger without an owner"),
        }
        name
    }
}

/// Returns the searches of the protocol, in which every claim holds. They include a search that does not wait for own
/// writes. Waiting saves requests, but no search found a claim that breaks without it.
#[must_use]
pub fn protocol() -> Vec<Search> {
    use Fault::{AnswerLost, Cancel, Crash, Erase, Late, Linger, Poke, Refused, Relist, Remake, Touch, Twice, Unmake};
    vec![
        Search::of(2, 2, &[]).quick(),
        Search::of(2, 2, &[Crash, AnswerLost]).quick(),
        Search::of(3, 1, &[Crash, Late, AnswerLost, Refused]).quick(),
        Search::of(3, 1, &[Crash, Unmake, Erase, Late]),
        Search::of(3, 2, &[]),
        Search::of(3, 2, &[]).latest_first(),
        Search::of(3, 2, &[Crash]),
        Search::of(3, 2, &[Late]),
        Search::of(3, 2, &[Twice]),
        Search::of(3, 2, &[AnswerLost]),
        Search::of(3, 2, &[Refused]),
        Search::of(3, 2, &[Touch]),
        Search::of(3, 2, &[Unmake]),
        Search::of(3, 2, &[Erase]),
        Search::of(3, 2, &[Cancel]),
        Search::of(3, 2, &[]).latest_first().no_retention(),
        Search::of(3, 2, &[Crash]).all_running().latest_first().no_retention(),
        Search::of(3, 2, &[Relist]).all_running(),
        Search::of(2, 2, &[Relist]).latest_first().no_retention(),
        Search::of(2, 2, &[Crash, Late]),
        Search::of(2, 2, &[Refused, Late]),
        Search::of(2, 2, &[Erase, Late]),
        Search::of(2, 2, &[Unmake, Late]),
        Search::of(2, 2, &[Unmake, Remake]),
        Search::of(1, 2, &[Unmake, Remake, Late]),
        Search::of(3, 2, &[]).stranger(Stranger::Unseen),
        Search::of(3, 2, &[]).stranger(Stranger::Seen),
        Search::of(3, 2, &[]).without(LeftOut::OwnWrites),
        Search::of(2, 2, &[Crash, AnswerLost]).without(LeftOut::OwnWrites).quick(),
        Search::of(2, 2, &[Linger]).drains().reads_residue(),
        Search::of(2, 2, &[Erase]).drains().reads_residue(),
        Search::of(2, 2, &[Linger, Crash]).drains().reads_residue(),
        Search::of(2, 2, &[Linger, Unmake]).drains().reads_residue(),
        Search::of(1, 2, &[Crash, AnswerLost]).retries().quick(),
        Search::of(2, 2, &[]).latest_first().retries().quick(),
        Search::of(2, 2, &[]).retries(),
        Search::of(2, 2, &[Crash]).retries(),
        Search::of(2, 2, &[Late]).retries(),
        Search::of(1, 2, &[Twice]).retries(),
        Search::of(2, 1, &[Twice]).retries(),
        Search::of(2, 2, &[AnswerLost]).retries(),
        Search::of(2, 2, &[Refused]).retries(),
        Search::of(2, 2, &[Touch]).retries(),
        Search::of(2, 2, &[Unmake]).retries(),
        Search::of(1, 2, &[Unmake, Remake]).retries(),
        Search::of(2, 2, &[Erase]).retries(),
        Search::of(2, 2, &[Cancel]).retries(),
        Search::of(2, 2, &[Poke]).retries(),
        poked().quick(),
        Search::of(1, 2, &[Linger]).drains().reads_residue().retries(),
        Search::of(2, 1, &[Linger]).drains().reads_residue().retries(),
        Search::of(3, 1, &[]).retries(),
        Search::of(2, 2, &[Crash]).apart().quick(),
        Search::of(2, 2, &[]).apart().retries().quick(),
        Search::of(2, 2, &[Crash]).apart().retries(),
        Search::of(2, 2, &[Late]).apart().retries(),
        Search::of(2, 2, &[Erase]).apart().retries(),
        Search::of(2, 2, &[Unmake]).apart().retries(),
    ]
}

/// Returns a search in which a user releases a pending run. A late create has left this run, with a lower number than
/// the execution has reached.
fn poked() -> Search {
    Search::of(2, 1, &[Fault::Poke, Fault::Late]).latest_first().no_retention().retries()
}

/// Returns searches with one rule left out, each with a claim that breaks without the rule.
#[must_use]
pub fn left_out() -> Vec<Search> {
    use Fault::{Crash, Erase, Late, Linger, Refused, Relist, Remake, Unmake};
    let renumbered = |faults| Search::of(3, 2, faults).all_running().latest_first().no_retention();
    vec![
        renumbered(&[]).without(LeftOut::Pending).breaks(Claim::OneAtATime).quick(),
        renumbered(&[]).without(LeftOut::Look).breaks(Claim::OneAtATime).quick(),
        renumbered(&[]).without(LeftOut::Order).breaks(Claim::OneAtATime).quick(),
        renumbered(&[Crash]).without(LeftOut::ListOrder).breaks(Claim::OneAtATime),
        renumbered(&[Relist]).without(LeftOut::WholeLists).breaks(Claim::OneAtATime),
        Search::of(2, 2, &[Unmake, Remake]).without(LeftOut::Owner).breaks(Claim::Own).quick(),
        Search::of(3, 2, &[]).without(LeftOut::CommitPrecondition).breaks(Claim::Final).quick(),
        Search::of(3, 2, &[]).without(LeftOut::EndPrecondition).breaks(Claim::Final).quick(),
        Search::of(2, 2, &[Late, Erase]).without(LeftOut::ReleasePrecondition).breaks(Claim::Committed).quick(),
        Search::of(3, 2, &[]).without(LeftOut::DeletePrecondition).breaks(Claim::Kept).quick(),
        Search::of(3, 2, &[Refused]).without(LeftOut::GiveUp).breaks(Claim::NotLost).quick(),
        Search::of(2, 1, &[Linger]).drains().reads_residue().without(LeftOut::Drain).breaks(Claim::Drained).quick(),
        Search::of(2, 1, &[Linger]).drains().reads_residue().without(LeftOut::DrainRead).breaks(Claim::Drained).quick(),
        Search::of(3, 2, &[]).without(LeftOut::SkipRead).breaks(Claim::TrueSkip).quick(),
        Search::of(3, 2, &[]).without(LeftOut::OwnerRead).breaks(Claim::Kept).quick(),
        Search::of(3, 2, &[]).without(LeftOut::LostRead).breaks(Claim::AfterItsRun).quick(),
        Search::of(2, 2, &[Erase]).latest_first().retries().without(LeftOut::AttemptLook).breaks(Claim::OneAtATime),
        Search::of(1, 2, &[Linger])
            .drains()
            .reads_residue()
            .retries()
            .without(LeftOut::OwnRemains)
            .breaks(Claim::Drained)
            .quick(),
        Search::of(2, 2, &[]).retries().without(LeftOut::Hold).breaks(Claim::Held).quick(),
        Search::of(2, 2, &[]).retries().without(LeftOut::HoldsRead).breaks(Claim::FreshSkip).quick(),
        Search::of(1, 2, &[]).retries().without(LeftOut::NextRun).breaks(Claim::NotLost).quick(),
        Search::of(2, 2, &[Late]).retries().without(LeftOut::RetryPrecondition).breaks(Claim::Final),
        Search::of(1, 1, &[]).retries().without(LeftOut::Worst).breaks(Claim::NothingRan).quick(),
        Search::of(2, 2, &[]).latest_first().retries().without(LeftOut::SkipRival).breaks(Claim::Ends).quick(),
        Search::of(2, 2, &[]).apart().retries().without(LeftOut::Elsewhere).breaks(Claim::Held).quick(),
        poked().without(LeftOut::OwnRuns).breaks(Claim::OneAtATime).quick(),
    ]
}
