//! The template of the page. `maud` escapes every text, and [`line()`] shows characters by number that would reverse or
//! hide text.

pub(super) mod played;
mod targets;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::axis::Axis;
use super::lane::Lanes;
use super::{Page, ScheduleRow};
use crate::circuits::Circuit;
use crate::output::line;
use crate::overview::{Line, Row};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The shapes that lanes share.
const SHAPES: &str = include_str!("shapes.svg");
/// How many rows of a section are shown: a page with more is no overview.
const MOST_ROWS: usize = 50;
/// How many rows of a section are shown at once.
const FIRST_ROWS: usize = 6;

/// Returns the content security policy: the style and the script of the page by their hashes, its icon, requests to
/// the server that it came from, and nothing else.
pub(crate) fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Writes a whole document around the content of a page.
fn shell(title: &str, is_well: bool, refreshes_after: Option<u64>, content: &Markup) -> Markup {
    let icon = format!(
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><circle cx='8' cy='8' r='7' \
         fill='{}'/></svg>",
        if is_well { "%231a7f37" } else { "%23cf222e" }
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (line(title)) }
                link rel="icon" href=(icon);
                style { (PreEscaped(STYLE)) }
            }
            body data-refresh=[refreshes_after] {
                (PreEscaped(SHAPES))
                p #notice role="status" {}
                div #page { (content) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// Writes the document of the overview.
pub(super) fn document(page: &Page, axis: &Axis, lanes: &Lanes, refreshes_after: Option<u64>) -> Markup {
    let content = html! {
        (header(page, refreshes_after.is_some()))
        main {
            (needs_person(page))
            (targets::targets(axis, lanes, refreshes_after.is_some()))
            div.pair {
                (rows("running", "Running", &page.overview.running, "kubectl wfe list -A --running"))
                (rows("waiting", "Waiting", &page.overview.waiting, "kubectl wfe list -A --waiting"))
            }
            (schedules(&page.schedules))
            (circuits_section(&page.circuits))
        }
        footer {
            p {
                "Read with your own permissions by kubectl wfe " (env!("CARGO_PKG_VERSION")) ". "
                "This page changes nothing: its buttons copy commands. Times are UTC."
            }
            @if let Some(assumed) = &page.assumed { p { "Assumed: " (line(assumed)) } }
        }
    };
    shell(&format!("{} · {}", headline(page), page.cluster), page.is_well(), refreshes_after, &content)
}

/// Returns the answer in a few words.
fn headline(page: &Page) -> String {
    match page.overview.needs_person.len() {
        0 if page.is_well() => "All is well".to_owned(),
        0 => "The operator needs attention".to_owned(),
        1 => "1 needs a person".to_owned(),
        count => format!("{count} need a person"),
    }
}

fn header(page: &Page, is_live: bool) -> Markup {
    let overview = &page.overview;
    let tile = |link: &str, name: &str, count: usize, mood: &str| {
        html! {
            a.tile.(mood)[count > 0] href={ "#" (link) } data-key={ "tile:" (link) } {
                strong { (count) } " " span { (name) }
            }
        }
    };
    html! {
        header {
            div.title {
                div {
                    h1 { span.dim { "wfe" } " " (line(&page.cluster)) }
                    @if let Some(namespace) = &overview.namespace { p.dim { "namespace " (line(namespace)) } }
                }
                p.verdict.(if page.is_well() { "good" } else { "bad" }) { (headline(page)) }
                p.asof {
                    "as of " time datetime=(crate::moment::shown(page.now)) { (page.now.format("%Y-%m-%d %H:%M:%S")) " UTC" }
                    span.dim { (if is_live { ", refreshes itself" } else { ", frozen" }) }
                }
            }
            nav.tiles aria-label="Sections" {
                (tile("needs-person", "need a person", overview.needs_person.len(), "bad"))
                (tile("running", "running", overview.running.len(), "busy"))
                (tile("waiting", "waiting", overview.waiting.len(), "warn"))
                (tile("circuits", "circuits open", page.circuits.len(), "warn"))
                (tile("schedules", "schedules", page.schedules.len(), "plain"))
            }
            ul.facts {
                (fact("operator", &overview.operator))
                (fact("policies", &overview.policies))
                li {
                    span.name { "last hour" }
                    @if overview.last_hour.is_empty() { "no execution ended" }
                    @for (nth, (word, count)) in overview.last_hour.iter().enumerate() {
                        @if nth > 0 { ", " }
                        (count) " " (line(word))
                    }
                }
            }
        }
    }
}

fn fact(name: &str, it: &Line) -> Markup {
    html! {
        li.(if it.is_well { "good" } else { "bad" }) {
            span.name { (name) }
            span.mark { (if it.is_well { "ok" } else { "!" }) } " " (line(&it.message))
        }
    }
}

/// Returns whether a command has only characters without a special meaning in a shell. All names that an API server
/// accepts have only such characters.
fn is_harmless(command: &str) -> bool {
    let words = command.strip_suffix(" --reason ''").unwrap_or(command);
    words.chars().all(|it| it.is_ascii_alphanumeric() || " ./_:@-".contains(it))
}

/// Writes a command, and the button that copies it. Without the script the button is not there.
fn command(command: &str) -> Markup {
    html! {
        @if is_harmless(command) {
            span.command {
                code { (line(command)) }
                button.copy type="button" data-key={ "copy:" (line(command)) } aria-label={ "Copy: " (line(command)) } { "Copy" }
            }
        }
    }
}

fn needs_person(page: &Page) -> Markup {
    let rows = &page.overview.needs_person;
    html! {
        section #needs-person aria-labelledby="h-needs-person" {
            h2 #h-needs-person { "Needs a person" span.count { (rows.len()) } }
            @if rows.is_empty() { p.empty { "No target is blocked, and no schedule waits for a person." } }
            (listed("cards", rows, "kubectl wfe list -A --needs-person"))
        }
    }
}

/// Tells how many rows are left out, and which command shows them.
fn more(count: usize, all: &str) -> Markup {
    html! {
        @if count > MOST_ROWS { p.more { "and " (count - MOST_ROWS) " more: " (command(all)) } }
    }
}

fn rows(id: &str, heading: &str, rows: &[Row], all: &str) -> Markup {
    html! {
        section #(id) aria-labelledby={ "h-" (id) } {
            h2 #{ "h-" (id) } { (heading) span.count { (rows.len()) } }
            @if rows.is_empty() { p.empty { "Nothing." } }
            (listed("rows", rows, all))
        }
    }
}

/// Writes rows. All but the first ones are folded, so that the lanes stay near.
fn listed(look: &str, rows: &[Row], all: &str) -> Markup {
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let (first, folded) = shown.split_at(shown.len().min(FIRST_ROWS));
    let list = |rows: &[Row]| {
        html! {
            ul.(look) {
                @for row in rows {
                    li {
                        p.what { b { (line(&row.subject)) } " " span.age { (line(&row.age)) } }
                        p.why { (line(&row.why)) }
                        p.commands { @for it in &row.commands { (command(it)) " " } }
                    }
                }
            }
        }
    };
    html! {
        (list(first))
        @if !folded.is_empty() {
            details.folded data-key={ "more:" (all) } {
                summary data-key={ "fold:" (all) } { "and " (folded.len()) " more" }
                (list(folded))
            }
        }
        (more(rows.len(), all))
    }
}

fn schedules(rows: &[ScheduleRow]) -> Markup {
    html! {
        section #schedules aria-labelledby="h-schedules" {
            h2 #h-schedules { "Schedules" span.count { (rows.len()) } }
            @if rows.is_empty() { p.empty { "There is no schedule." } } @else {
                table {
                    thead { tr { th scope="col" { "Schedule" } th scope="col" { "Every" } th scope="col" { "Last" } th scope="col" { "Next" } th scope="col" { "Then" } } }
                    tbody {
                        @for row in rows.iter().take(MOST_ROWS) {
                            tr {
                                th scope="row" { (line(&row.name)) span.on { " on " (line(&row.target)) } }
                                td data-label="Every" { (line(&row.every)) }
                                td data-label="Last" { (line(&row.last)) }
                                td data-label="Next" { (line(&row.next)) }
                                td data-label="Then" {
                                    @match &row.held {
                                        Some(held) => { p.held { (line(held)) } (command(&row.command)) },
                                        None => "runs",
                                    }
                                }
                            }
                        }
                    }
                }
            }
            (more(rows.len(), "kubectl wfe schedule list -A"))
        }
    }
}

fn circuits_section(circuits: &[Circuit]) -> Markup {
    html! {
        section #circuits aria-labelledby="h-circuits" {
            h2 #h-circuits { "Circuits" span.count { (circuits.len()) } }
            @if circuits.is_empty() { p.empty { "None is open: no failure is shared by many targets." } }
            ul.cards {
                @for it in circuits.iter().take(MOST_ROWS) {
                    li {
                        p.what { b { (line(&it.fingerprint)) } " " span.age { "open since " (it.since) } }
                        p.why {
                            (it.failed) " targets had failed. It holds back " @match it.held { Some(held) => { (held) } None => { "an unknown number of" } }
                            " schedules. Next probe not before "
                            (it.next_probe) @if let Some(turn) = &it.turn { ", by " (line(turn)) } "."
                        }
                    }
                }
            }
            (more(circuits.len(), "kubectl wfe circuits"))
        }
    }
}
