//! Parses a condition into its tree and checks the size of the tree. Names and types are checked elsewhere.

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::parser::Macro;
use cel::{Env, ParseErrors};

use crate::unusable::Unusable;
use crate::{MAX_CHARACTERS, MAX_NODES};

pub(crate) fn parse(text: &str) -> Result<IdedExpr, Unusable> {
    let characters = text.chars().count();
    match characters {
        0 => return Err(Unusable::Empty),
        1..=MAX_CHARACTERS => {}
        _ => return Err(Unusable::TooLong { characters }),
    }
    let condition = environment().parser().parse(text).map_err(|errors| syntax_error(&errors))?;
    match nodes(&condition) {
        ..=MAX_NODES => Ok(condition),
        nodes => Err(Unusable::TooManyNodes { nodes }),
    }
}

/// Returns the language of conditions: all functions of CEL, the macro `has`, and no optional values. Other macros are
/// not expanded. For example, `[1].all(i, true)` stays a call, which is refused because of its name.
pub(crate) fn environment() -> Env {
    let mut environment = Env::default().with_optional_support(false).with_stdlib();
    let has = Macro::global("has", 1, |_, _, arguments| match arguments.first_mut() {
        Some(IdedExpr { expr: Expr::Select(select), id }) if !select.test => {
            let (mut select, id) = (std::mem::take(select), *id);
            select.test = true;
            Ok(Some(IdedExpr { id, expr: Expr::Select(select) }))
        }
        _ => Ok(None),
    });
    // The environment has no macro yet, so this cannot conflict.
    drop(environment.add_macro(has));
    environment
}

/// Returns the first error with a position. The parser's own text only lists its tokens, which does not help a user.
/// But only that text shows that brackets are nested too deep.
fn syntax_error(errors: &ParseErrors) -> Unusable {
    if errors.errors.iter().any(|error| error.msg.contains("Recursion limit")) {
        return Unusable::TooDeep;
    }
    let place = errors.errors.iter().find_map(|error| {
        let (line, column) = (usize::try_from(error.pos.0).ok()?, usize::try_from(error.pos.1).ok()?);
        (line > 0).then_some(Unusable::Syntax { line, column })
    });
    place.unwrap_or(Unusable::NotParsed)
}

fn nodes(node: &IdedExpr) -> usize {
    let children: usize = match &node.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).map(nodes).sum(),
        Expr::Select(select) => nodes(&select.operand),
        Expr::List(list) => list.elements.iter().map(nodes).sum(),
        Expr::Map(map) => map.entries.iter().map(|entry| entry_nodes(&entry.expr)).sum(),
        Expr::Struct(message) => message.entries.iter().map(|entry| entry_nodes(&entry.expr)).sum(),
        // No macro that produces a comprehension is expanded, and `types::check` refuses comprehensions.
        Expr::Comprehension(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => 0,
    };
    1 + children
}

fn entry_nodes(entry: &EntryExpr) -> usize {
    match entry {
        EntryExpr::MapEntry(entry) => nodes(&entry.key) + nodes(&entry.value),
        EntryExpr::StructField(field) => nodes(&field.value),
    }
}
