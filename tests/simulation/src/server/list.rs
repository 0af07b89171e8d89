//! Lists in pages. All pages show the same revision.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Server;
use super::answer::{Answer, bad_request, expired};
use super::select::Selector;
use super::target::{Query, Target};

/// The position in a list from which a continue token continues: the last key, and the revision.
struct Token {
    revision: u64,
    after: String,
}

impl Token {
    /// Parses a token. A real token is base64, and just as opaque to clients.
    fn parse(text: &str) -> Option<Self> {
        let (revision, after) = text.split_once(':')?;
        Some(Self { revision: revision.parse().ok()?, after: after.to_owned() })
    }

    fn render(&self) -> String {
        format!("{}:{}", self.revision, self.after)
    }
}

impl Server {
    pub(super) fn list(&self, target: &Target, query: &Query) -> Result<Answer, Answer> {
        let selector = Selector::parse(query)?;
        let token = match query.text("continue") {
            Some(text) => Some(Token::parse(text).ok_or_else(|| bad_request("continue key is not valid"))?),
            None => None,
        };
        let revision = token.as_ref().map_or(self.store.revision(), |token| token.revision);
        if revision < self.store.compacted() {
            return Err(expired("The provided continue parameter is too old to display a consistent list result."));
        }
        let prefix = target.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let all = self.store.all_at(target.kind, revision);
        let mut rest = all
            .iter()
            .filter(|(path, _)| path.starts_with(&prefix) && token.as_ref().is_none_or(|token| ***path > *token.after));
        let limit = query.number("limit").filter(|limit| *limit > 0);
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let selected = rest.by_ref().filter(|(_, object)| selector.selects(object));
        let page: Vec<(&&str, &Arc<Value>)> = selected.take(limit).collect();
        // Whether the selector matches the remaining objects is known only on the next page.
        let left = rest.count();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some((last, _)) = page.last().filter(|_| left > 0) {
            metadata["continue"] = json!(Token { revision, after: (**last).to_owned() }.render());
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(left);
            }
        }
        let kind = self.kind(target);
        let items: Vec<Value> = page.into_iter().map(|(_, object)| self.shown(target.kind, object)).collect();
        Ok(Answer::ok(json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": metadata,
            "items": items,
        })))
    }
}
