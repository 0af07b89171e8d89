//! Makes a plan that breaks a rule smaller: first fewer faults, then fewer acts, then shorter faults.

use crate::plan::Plan;
use crate::world::{How, play};

/// How many smaller plans are tried. They take some minutes.
const TRIES: usize = 600;

/// Returns the smallest plan found that still has the same violation. Only the text of violations up to the first digit
/// is compared, because names and times follow.
///
/// # Errors
/// Returns an error if the plan cannot be played.
pub fn shrink(plan: &Plan) -> anyhow::Result<Plan> {
    let mut search = Search { kind: None, tries: 0 };
    search.kind = search.kind_of(plan)?;
    let mut plan = plan.clone();
    loop {
        let before = plan.clone();
        search.thin(&mut plan, |plan| &mut plan.faults)?;
        search.thin(&mut plan, |plan| &mut plan.acts)?;
        search.shorten(&mut plan)?;
        if plan == before || search.tries >= TRIES {
            return Ok(plan);
        }
    }
}

struct Search {
    /// The violation of the original plan, up to the first digit.
    kind: Option<String>,
    tries: usize,
}

impl Search {
    fn kind_of(&mut self, plan: &Plan) -> anyhow::Result<Option<String>> {
        self.tries += 1;
        let outcome = play(plan, How::default())?;
        let first = outcome.violations.into_iter().next();
        Ok(first.map(|first| first.chars().filter(|letter| !letter.is_ascii_digit()).take(40).collect()))
    }

    fn still_breaks(&mut self, plan: &Plan) -> anyhow::Result<bool> {
        Ok(self.tries < TRIES && plan.check().is_ok() && self.kind_of(plan)? == self.kind)
    }

    /// Removes parts of a list: first halves, then smaller and smaller parts.
    fn thin<T: Clone>(&mut self, plan: &mut Plan, list: fn(&mut Plan) -> &mut Vec<T>) -> anyhow::Result<()> {
        let mut size = list(plan).len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < list(plan).len() {
                let mut smaller = plan.clone();
                let items = list(&mut smaller);
                items.drain(from..(from + size).min(items.len()));
                if self.still_breaks(&smaller)? {
                    *plan = smaller;
                } else {
                    from += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(())
    }

    /// Halves the duration of each fault as many times as possible.
    fn shorten(&mut self, plan: &mut Plan) -> anyhow::Result<()> {
        for number in 0..plan.faults.len() {
            loop {
                let mut shorter = plan.clone();
                let fault = &mut shorter.faults[number];
                let length = fault.to - fault.from;
                fault.to = fault.from + length / 2;
                if length < 2 || !self.still_breaks(&shorter)? {
                    break;
                }
                *plan = shorter;
            }
        }
        Ok(())
    }
}
