//! The template of the page. `maud` escapes every text, and [`line`] shows characters by number that would reverse or
//! hide text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::axis::{Axis, FULL, Window};
use super::lane::{Drawn, Kind, Lane, Lanes};
use super::{Page, ScheduleRow};
use crate::circuits::Circuit;
use crate::output::line;
use crate::status::{Line, Row};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The shapes that lanes share.
const SHAPES: &str = include_str!("shapes.svg");
/// How many rows of a section are shown: a page with more is no overview.
const MOST_ROWS: usize = 50;
/// The legend, in the order of reading.
const LEGEND: [(Kind, &str); 11] = [
    (Kind::Ran, "completed"),
    (Kind::Failed, "failed"),
    (Kind::Runs, "running"),
    (Kind::Waiting, "waiting"),
    (Kind::Blocked, "blocked"),
    (Kind::Backoff, "backoff"),
    (Kind::Cooldown, "cooldown"),
    (Kind::Skipped, "skipped"),
    (Kind::Cleared, "cleared"),
    (Kind::Slot, "next slot"),
    (Kind::HeldSlot, "held slot"),
];

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

/// Writes the whole document.
pub(super) fn document(page: &Page, axis: &Axis, lanes: &Lanes, refreshes_after: Option<u64>) -> Markup {
    let is_well = page.is_well();
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
                title { (headline(page)) " · " (line(&page.cluster)) }
                link rel="icon" href=(icon);
                style { (PreEscaped(STYLE)) }
            }
            body data-refresh=[refreshes_after] {
                (PreEscaped(SHAPES))
                p #notice role="status" {}
                div #page {
                    (header(page, refreshes_after.is_some()))
                    main {
                        (needs_person(page))
                        (targets(axis, lanes, refreshes_after.is_some()))
                        div.pair {
                            (rows("running", "Running", &page.overview.running, "kubectl wfe list -A --running"))
                            (rows("waiting", "Waiting", &page.overview.waiting, "kubectl wfe list -A --waiting"))
                        }
                        (schedules(&page.schedules))
                        (circuits(&page.circuits))
                    }
                    footer {
                        p {
                            "Read with your own permissions by kubectl wfe " (env!("CARGO_PKG_VERSION")) ". "
                            "This page changes nothing: its buttons copy commands. Times are UTC."
                        }
                        @if let Some(assumed) = &page.assumed { p { "Assumed: " (line(assumed)) } }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
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

/// Writes a command, and the button that copies it. Without the script the button is not there.
fn command(command: &str) -> Markup {
    html! {
        span.command {
            code { (line(command)) }
            button.copy type="button" data-key={ "copy:" (line(command)) } aria-label={ "Copy: " (line(command)) } { "Copy" }
        }
    }
}

fn needs_person(page: &Page) -> Markup {
    let rows = &page.overview.needs_person;
    html! {
        section #needs-person aria-labelledby="h-needs-person" {
            h2 #h-needs-person { "Needs a person" span.count { (rows.len()) } }
            @if rows.is_empty() { p.empty { "No target is blocked, and no schedule waits for a person." } }
            ul.cards {
                @for row in rows.iter().take(MOST_ROWS) {
                    li.card {
                        p.what { b { (line(&row.subject)) } " " span.age { (line(&row.age)) } }
                        p.why { (line(&row.why)) }
                        p.commands { @for it in &row.commands { (command(it)) " " } }
                    }
                }
            }
            (more(rows.len(), "kubectl wfe list -A --needs-person"))
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
            ul.rows {
                @for row in rows.iter().take(MOST_ROWS) {
                    li {
                        p.what { b { (line(&row.subject)) } " " span.age { (line(&row.age)) } }
                        p.why { (line(&row.why)) }
                        p.commands { @for it in &row.commands { (command(it)) " " } }
                    }
                }
            }
            (more(rows.len(), all))
        }
    }
}

/// Writes a place on the axis in percent.
fn percent(place: i64) -> String {
    format!("{}.{:02}%", place / 100, place % 100)
}

fn targets(axis: &Axis, lanes: &Lanes, is_live: bool) -> Markup {
    let labels = axis.labels();
    html! {
        section #targets aria-labelledby="h-targets" {
            div.heading {
                h2 #h-targets { "Targets" span.count { (lanes.lanes.len()) } }
                @if is_live {
                    nav.windows aria-label="How far back" {
                        @for window in Window::ALL {
                            a href={ "?window=" (window.name()) } data-key={ "window:" (window.name()) }
                                aria-current=[(window == axis.window).then_some("true")] { (window.name()) }
                        }
                    }
                } @else { p.dim { "the last " (axis.window.name()) } }
            }
            @if lanes.lanes.is_empty() {
                p.empty { "Nothing happened on a target within the last " (axis.window.name()) "." }
            } @else {
                (legend())
                div.axis aria-hidden="true" {
                    span {}
                    svg height="20" {
                        @for (place, label) in &labels {
                            @if (300..8100).contains(place) || (9000..9800).contains(place) {
                                text x=(percent(*place)) y="14" { (label) }
                            }
                        }
                        text.now x=(percent(axis.place(axis.now))) y="14" { "now" }
                    }
                }
                ol.lanes { @for lane in &lanes.lanes { (row(lane, axis, &labels)) } }
            }
            @if lanes.left_out > 0 {
                p.more { (lanes.left_out) " more targets moved within the last " (axis.window.name()) ", and have no lane here." }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        ul.legend {
            @for (kind, word) in LEGEND {
                li { svg width="22" height="32" aria-hidden="true" { (shape(&sample(kind))) } (word) }
            }
        }
    }
}

/// Returns a bar or a mark as the legend shows it.
fn sample(kind: Kind) -> Drawn {
    let (at, wide) = match kind {
        Kind::Failed => (FULL / 3, FULL / 3), // it is high
        _ if kind.is_mark() => (FULL / 2, 0),
        _ => (0, FULL),
    };
    Drawn { kind, at, wide, count: 1, title: String::new() }
}

fn row(lane: &Lane, axis: &Axis, labels: &[(i64, String)]) -> Markup {
    let now = axis.place(axis.now);
    html! {
        li {
            details.lane data-key={ "lane:" (line(&lane.target)) } {
                summary data-key={ "open:" (line(&lane.target)) } data-stop {
                    span.label {
                        b { (line(&lane.target)) } " "
                        span.state.(if lane.needs_person { "bad" } else { "calm" }) { (line(&lane.state)) }
                    }
                    span.text { (line(&lane.text)) }
                    svg height="32" role="img" aria-label=(line(&lane.text)) {
                        rect.ahead x=(percent(now)) y="0" width=(percent(FULL - now)) height="32" {}
                        @for (place, _) in labels { line.grid x1=(percent(*place)) x2=(percent(*place)) y1="0" y2="32" {} }
                        @for it in &lane.drawn { (shape(it)) }
                        line.now x1=(percent(now)) x2=(percent(now)) y1="0" y2="32" {}
                    }
                }
                div.events {
                    @if lane.earlier > 0 { p.dim { (lane.earlier) " earlier" } }
                    ol {
                        @for it in &lane.events {
                            li {
                                time { (it.time.format("%m-%d %H:%M:%S")) } " "
                                b { (line(&it.what)) @if it.count > 1 { " ×" (it.count) } } " "
                                (line(&it.who)) span.dim { " " (line(&it.detail)) }
                            }
                        }
                    }
                    p.commands { (command(&format!("kubectl wfe history {}", lane.target))) }
                }
            }
        }
    }
}

/// Draws a bar or a mark. Kinds differ by height and pattern too, and not by colour alone.
fn shape(it: &Drawn) -> Markup {
    let (x, wide) = (percent(it.at), percent(it.wide.min(FULL - it.at).max(1)));
    // A storm is as high as it has digits.
    let high = 4 + 5 * it.count.to_string().len();
    let (y, height) = match it.kind {
        Kind::Failed => (5, 22),
        Kind::Cooldown | Kind::Backoff => (14, 4),
        Kind::Blocked => (8, 16),
        _ => (10, 12),
    };
    html! {
        @match it.kind {
            Kind::Skipped => rect.skipped x=(x) y=(32 - high) width="2" height=(high) { title { (line(&it.title)) } },
            Kind::Cleared | Kind::Slot | Kind::HeldSlot => {
                use.(it.kind.name()) href={ "#" (it.kind.name()) } x=(x) y="16" { title { (line(&it.title)) } }
            }
            _ => rect.(it.kind.name()) x=(x) y=(y) width=(wide) height=(height) rx="2" { title { (line(&it.title)) } },
        }
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

fn circuits(circuits: &[Circuit]) -> Markup {
    html! {
        section #circuits aria-labelledby="h-circuits" {
            h2 #h-circuits { "Circuits" span.count { (circuits.len()) } }
            @if circuits.is_empty() { p.empty { "None is open: no failure is shared by many targets." } }
            ul.cards {
                @for it in circuits.iter().take(MOST_ROWS) {
                    li.card {
                        p.what { b { (line(&it.fingerprint)) } " " span.age { "open since " (it.since) } }
                        p.why {
                            (it.failed) " targets had failed; it holds " (it.held) " schedules. Next probe not before "
                            (it.next_probe) @if let Some(turn) = &it.turn { ", by " (line(turn)) } "."
                        }
                    }
                }
            }
            (more(circuits.len(), "kubectl wfe circuits"))
        }
    }
}
