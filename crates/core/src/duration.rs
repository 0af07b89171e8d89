//! Go durations: the spelling that the API and Tekton use (`1h30m`, `4m30s`).
//!
//! No other crate reads exactly what the API server's `duration()` accepts: each panics or accepts more. The tests list
//! texts that Go's own `time.ParseDuration` reads, and texts that it refuses.

use std::time::Duration;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Why a text is not a duration that the operator accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a Go duration at all.
    #[error("is not a duration such as 90s, 30m or 1h30m")]
    Malformed,
    /// The text is a Go duration, but a negative one.
    #[error("must not be negative")]
    Negative,
    /// The text is a Go duration of more than the 292 years that Go holds.
    #[error("is too large")]
    TooLarge,
}

/// Reads a Go duration that is not negative.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let nanos = if unsigned == "0" { 0 } else { parse_unsigned(unsigned)? };
    if negative && nanos > 0 {
        return Err(DurationError::Negative);
    }
    Ok(Duration::from_nanos(nanos))
}

fn parse_unsigned(text: &str) -> Result<u64, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Malformed);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (component, after) = parse_component(rest)?;
        total = total.checked_add(component).ok_or(DurationError::TooLarge)?;
        rest = after;
    }
    // Go's type is a signed 64-bit count of nanoseconds.
    if total > i64::MAX.unsigned_abs() {
        return Err(DurationError::TooLarge);
    }
    Ok(total)
}

/// Reads one pair of number and unit, and returns its nanoseconds and the rest of the text.
fn parse_component(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole_digits, rest) = split_digits(text);
    let (fraction_digits, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if whole_digits.is_empty() && fraction_digits.is_empty() {
        return Err(DurationError::Malformed);
    }
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit_nanos = unit_nanos(unit).ok_or(DurationError::Malformed)?;
    let whole = if whole_digits.is_empty() {
        0
    } else {
        // Digits alone can only fail to parse by overflow.
        whole_digits.parse::<u64>().map_err(|_| DurationError::TooLarge)?
    };
    let nanos = whole.checked_mul(unit_nanos).ok_or(DurationError::TooLarge)?;
    let fraction = fraction_nanos(fraction_digits, unit_nanos);
    Ok((nanos.checked_add(fraction).ok_or(DurationError::TooLarge)?, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        _ => return None,
    })
}

/// Returns `0.digits` of a unit in whole nanoseconds, rounded down. Digits beyond the fifteenth are below a nanosecond
/// of any unit (an hour has 3.6e12), and a `u128` holds fifteen digits times an hour.
fn fraction_nanos(digits: &str, unit_nanos: u64) -> u64 {
    let digits = &digits[..digits.len().min(15)];
    let Ok(numerator) = digits.parse::<u128>() else {
        return 0; // no digits
    };
    let denominator = 10_u128.pow(u32::try_from(digits.len()).unwrap_or(15));
    u64::try_from(numerator * u128::from(unit_nanos) / denominator).unwrap_or(0)
}

/// Writes a duration as Go does, in whole seconds: `30m0s`, `1h0m0s`, `45s`, `0s`. A duration of more than Go's maximum
/// of 292 years is written as the maximum, so that it can be read back.
#[must_use]
pub fn format(duration: Duration) -> String {
    let seconds = duration.as_secs().min(i64::MAX.unsigned_abs() / NANOS_PER_SECOND);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("+0", 0),
            ("-0s", 0),
            ("30m", 1_800 * NANOS_PER_SECOND),
            ("1h30m", 5_400 * NANOS_PER_SECOND),
            ("1m30.5s", 90_500_000_000),
            (".5s", 500_000_000),
            ("1.s", NANOS_PER_SECOND),
            ("3us", 3_000),
            ("3\u{b5}s", 3_000),
            ("24h", 86_400 * NANOS_PER_SECOND),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses_and_what_is_negative() {
        use DurationError::{Malformed, Negative, TooLarge};
        for (text, error) in [
            ("", Malformed),
            ("5", Malformed),
            ("1 m", Malformed),
            ("1d", Malformed),
            ("10min", Malformed),
            ("s", Malformed),
            (".s", Malformed),
            ("+-5s", Malformed),
            ("banana", Malformed),
            ("-5s", Negative),
            ("99999999999999999999h", TooLarge),
            ("2562048h", TooLarge),
            ("9223372036854775808ns", TooLarge),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn writes_as_go_writes() {
        for (seconds, text) in
            [(0, "0s"), (45, "45s"), (90, "1m30s"), (1800, "30m0s"), (3600, "1h0m0s"), (86_400, "24h0m0s")]
        {
            assert_eq!(format(Duration::from_secs(seconds)), text);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn reads_back_what_it_writes(seconds in 0_u64..9_000_000_000) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }
    }
}
