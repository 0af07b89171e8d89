//! The part of the page with the lanes: the legend, the axis, and a row for each target.

use maud::{Markup, html};

use super::command;
use crate::output::line;
use crate::page::axis::{Axis, FULL, Window};
use crate::page::lane::{Drawn, Kind, Lane, Lanes};

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

/// Writes a place on the axis in percent.
fn percent(place: i64) -> String {
    format!("{}.{:02}%", place / 100, place % 100)
}

/// Writes the section of the lanes.
pub(super) fn targets(axis: &Axis, lanes: &Lanes, is_live: bool) -> Markup {
    let labels = axis.labels();
    html! {
        section #targets aria-labelledby="h-targets" {
            div.heading {
                h2 #h-targets { "Targets" span.count { (lanes.lanes.len()) } }
                @if is_live {
                    nav.windows aria-label="How far back" {
                        @for window in Window::ALL {
                            a href={ "?window=" (window.name()) } data-key={ "window:" (window.name()) }
                                aria-current=[(Some(window) == axis.window).then_some("true")] { (window.name()) }
                        }
                    }
                } @else { p.dim { (axis.name()) } }
            }
            @if lanes.lanes.is_empty() {
                p.empty { "Nothing happened on a target within " (axis.name()) "." }
            } @else {
                (legend())
                div.axis aria-hidden="true" {
                    span {}
                    svg height="20" {
                        @for (place, label) in &labels {
                            @if axis.has_room(*place) {
                                text x=(percent(*place)) y="14" { (label) }
                            }
                        }
                        @if axis.window.is_some() { text.now x=(percent(axis.place(axis.now))) y="14" { "now" } }
                    }
                }
                ol.lanes { @for lane in &lanes.lanes { (row(lane, axis, &labels)) } }
            }
            @if lanes.left_out > 0 {
                p.more { (lanes.left_out) " more targets have no lane here." }
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
        Kind::Failed => (FULL / 3, FULL / 3), // a failure is drawn high
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
                    @if axis.window.is_some() {
                        p.commands { (command(&format!("kubectl wfe history {}", lane.target))) }
                    }
                }
            }
        }
    }
}

/// Draws a bar or a mark. Kinds differ by height and pattern too, and not by colour alone.
fn shape(it: &Drawn) -> Markup {
    let (x, wide) = (percent(it.at), percent(it.wide.min(FULL - it.at).max(1)));
    // The more digits the count has, the higher the mark.
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
