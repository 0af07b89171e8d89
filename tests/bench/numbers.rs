//! Medians, percentiles and rates.

use std::time::Duration;

/// Converts a count, which is far below 2^52 in a benchmark.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}

/// Returns the percentile of the samples (nearest rank); NaN if there are none.
pub(crate) fn percentile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank, between 1 and the count")]
    let rank = (part * float(sorted.len())).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Returns the median of the samples; NaN if there are none. The median of an even number of samples is the mean of the
/// two middle samples.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (_, Some(one)) => *one,
        _ => f64::NAN,
    }
}

/// Returns the smallest and the largest sample.
pub(crate) fn range(samples: &[f64]) -> (f64, f64) {
    samples.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(*one), high.max(*one)))
}

/// Returns a count per second.
pub(crate) fn per_second(count: usize, took: Duration) -> f64 {
    float(count) / took.as_secs_f64()
}

/// Returns a duration in milliseconds.
pub(crate) fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_taken_of_what_is_there() {
        let close = |left: f64, right: f64| (left - right).abs() < 1e-9;
        let samples: Vec<f64> = (1..=100).map(f64::from).rev().collect();
        assert!(close(median(&samples), 50.5) && close(median(&samples[..99]), 51.0));
        assert!(close(percentile(&samples, 0.99), 99.0) && close(percentile(&samples, 1.0), 100.0));
        assert!(close(percentile(&[7.0], 0.5), 7.0) && median(&[]).is_nan() && percentile(&[], 0.5).is_nan());
        assert_eq!(range(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }
}
