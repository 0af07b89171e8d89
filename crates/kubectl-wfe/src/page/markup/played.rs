//! The template of a play as a page.

use maud::{Markup, html};

use super::{shell, targets};
use crate::output::line;
use crate::page::Played;
use crate::page::axis::Axis;
use crate::page::lane::Lanes;

/// How many lines are shown: more than a person reads. The answer as text has all of them.
const MOST_LINES: usize = 500;

/// Writes the document of a play.
pub(in crate::page) fn document(play: &Played, axis: &Axis, lanes: &Lanes) -> Markup {
    let time = |at: wfe_core::Time| at.format("%Y-%m-%d %H:%M:%S").to_string();
    let content = html! {
        header {
            div.title {
                div {
                    h1 { span.dim { "wfe simulate" } " " (line(&play.title)) }
                    @if let Some(condition) = &play.condition { p.dim { (line(condition)) } }
                }
                p.verdict.(if play.is_well { "good" } else { "bad" }) { (line(&play.verdict)) }
                p.asof { (time(play.from)) " to " (time(play.to)) " UTC" }
            }
            ul.facts {
                li { span.name { "totals" } (line(&play.totals)) }
                @for (name, fact) in &play.facts { li { span.name { (line(name)) } (line(fact)) } }
            }
        }
        main {
            (targets::targets(axis, lanes, false))
            @if play.left_out > 0 { p.more { (play.left_out) " further bars and marks are left out." } }
            section #lines aria-labelledby="h-lines" {
                h2 #h-lines { "What happens" span.count { (play.lines.len()) } }
                @if play.lines.is_empty() { p.empty { "Nothing happens." } } @else {
                    table.lines {
                        thead { tr { th scope="col" { "At" } th scope="col" { "Subject" } th scope="col" { "What" } th scope="col" { "Detail" } } }
                        tbody {
                            @for [at, subject, what, detail] in play.lines.iter().take(MOST_LINES) {
                                tr {
                                    th scope="row" { (line(at)) }
                                    td data-label="Subject" { (line(subject)) }
                                    td data-label="What" { (line(what)) }
                                    td data-label="Detail" { (line(detail)) }
                                }
                            }
                        }
                    }
                }
                @if play.lines.len() > MOST_LINES {
                    p.more { "and " (play.lines.len() - MOST_LINES) " more lines, which the answer as text has" }
                }
            }
        }
        footer {
            p { "Played by kubectl wfe " (env!("CARGO_PKG_VERSION")) ": nothing of this has happened. Times are UTC." }
        }
    };
    shell(&format!("{} · {}", play.verdict, play.title), play.is_well, None, &content)
}
