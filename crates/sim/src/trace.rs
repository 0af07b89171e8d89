//! A path through the model, told step by step.
use stateright::Path;

use crate::model::{Move, Setting, State};

/// Tells a path, a line a step.
#[must_use]
pub fn tell(setting: &Setting, path: Path<State, Move>) -> Vec<String> {
    let mut lines = Vec::new();
    for (state, next) in path.into_vec() {
        let Some(next) = next else { continue };
        let line = match next {
            Move::Perform(who, index, fate) => format!("{} {:?} {fate:?}", state.operators[who].label.0, state.operators[who].steps(setting.translation)[index]),
            Move::Crash(who)| Move::List(who)| Move::Relist(who)|Move::Deliver(who, _) => format!("{} {:?}", state.operators[who].label.0, next),
            Move::Arrive(n) => format!("arrive {:?}", state.wire[n]),
            _ => format!("{next:?}"),
        };
        lines.push(line);
    }
    lines
}
