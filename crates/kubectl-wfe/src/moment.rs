//! Times and durations as shown to people.

use std::time::Duration;

use wfe_core::{Time, duration};

/// Shows a time in whole seconds.
pub(crate) fn shown(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Shows the time between two moments, `0s` if the second is not later. Ten minutes need no seconds, and a day needs no
/// minutes: `9m59s`, `2h10m`, `6d23h`.
pub(crate) fn since(from: Time, now: Time) -> String {
    let seconds = (now - from).to_std().unwrap_or_default().as_secs();
    match seconds {
        ..600 => span(Duration::from_secs(seconds)),
        600..86_400 => span(Duration::from_secs(seconds - seconds % 60)),
        _ => match (seconds / 86_400, seconds / 3_600 % 24) {
            (days, 0) => format!("{days}d"),
            (days, hours) => format!("{days}d{hours}h"),
        },
    }
}

/// Shows a time beside its distance from now: `2026-01-02T03:04:05Z (3m ago)`, `2026-01-02T03:04:05Z (in 5m)`.
pub(crate) fn beside(time: Time, now: Time) -> String {
    let distance = if time > now { format!("in {}", since(now, time)) } else { format!("{} ago", since(time, now)) };
    format!("{} ({distance})", shown(time))
}

/// Shows a duration without zero units: 30m, 1h30m, 1.5s.
pub(crate) fn span(duration: Duration) -> String {
    let millis = duration.subsec_millis();
    let whole = duration::format(duration);
    if millis > 0 {
        let fraction = format!("{millis:03}");
        return format!("{}.{}s", whole.trim_end_matches('s'), fraction.trim_end_matches('0'));
    }
    let without = |text: &str, none: &str, unit: char| match text.strip_suffix(none) {
        Some(rest) if rest.ends_with(unit) => rest.to_owned(),
        _ => text.to_owned(),
    };
    without(&without(&whole, "0s", 'm'), "0m", 'h')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_beside_its_distance() {
        let now: Time = "2026-01-02T03:04:05.9Z".parse().unwrap();
        assert_eq!(beside(now - Duration::from_secs(110), now), "2026-01-02T03:02:15Z (1m50s ago)");
        assert_eq!(beside(now + Duration::from_hours(5), now), "2026-01-02T08:04:05Z (in 5h)");
        assert_eq!(since(now + Duration::from_secs(3), now), "0s");
    }

    #[test]
    fn durations_are_brief() {
        for (millis, text) in [
            (0, "0s"),
            (10_000, "10s"),
            (600_000, "10m"),
            (36_000_000, "10h"),
            (3_660_000, "1h1m"),
            (3_601_000, "1h0m1s"),
            (61_500, "1m1.5s"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }
}
