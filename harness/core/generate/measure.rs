//! How complex values are, and simpler ones.

/// How complex a case is, compared from the first part on: dimensions, distinct values, then the
/// complexity of the numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure(pub Vec<u64>);

/// How complex a number is: 0 is the simplest, then 1, -1, small integers, few decimals, the rest.
pub fn complexity(x: f64) -> u64 {
    let sign = u64::from(x.is_sign_negative());
    let magnitude = x.abs();
    if x.is_nan() {
        return 5_000_000;
    }
    if magnitude.is_infinite() {
        return 4_000_000 + sign;
    }
    if magnitude.fract() == 0.0 && magnitude < 1e5 {
        return 2 * magnitude as u64 + sign;
    }
    if magnitude.fract() == 0.0 {
        return 300_000 + magnitude.log10() as u64 * 2 + sign;
    }
    for decimals in 1..=6_u32 {
        let scaled = magnitude * f64::from(10_u32.pow(decimals));
        let whole = scaled.round();
        let close = (scaled - whole).abs() <= 1e-6 * whole.max(1e-30);
        if close && whole < 1e6 && whole > 0.0 {
            return 400_000 * u64::from(decimals) + 2 * (whole as u64).min(190_000) + sign;
        }
    }
    3_000_000 + sign + 2 * (magnitude.log2().abs() as u64).min(2000)
}

/// Simpler numbers than `x`, the simplest first.
pub fn simpler_numbers(x: f64) -> Vec<f64> {
    let mut candidates = vec![0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 10.0, -10.0, 0.5, -0.5, 0.1];
    if x.is_finite() {
        candidates.extend([x.abs(), x.trunc(), (x / 2.0).trunc(), x.trunc() - x.signum()]);
        for decimals in 1..=4 {
            let scale = 10_f64.powi(decimals);
            candidates.push((x * scale).round() / scale);
        }
        if x != 0.0 {
            let scale = 10_f64.powf(x.abs().log10().floor());
            candidates.extend([x.signum() * scale, (x / scale).round() * scale]);
        }
    }
    let limit = complexity(x);
    candidates.retain(|candidate| complexity(*candidate) < limit);
    candidates.sort_by(|a, b| complexity(*a).cmp(&complexity(*b)).then(a.total_cmp(b)));
    candidates.dedup();
    candidates
}

/// Whether numbers differ, all by less than a 500th of their size: a variance made of squares is
/// lost in rounding.
pub fn is_far_off(numbers: &[f64]) -> bool {
    let lo = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = numbers.iter().map(|x| x.abs()).fold(f64::INFINITY, f64::min);
    hi > lo && 500.0 * (hi - lo) < least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpler_numbers_are_simpler_and_end() {
        for x in [0.1, -3.7, 1e-3, 12345.678, 1e9, f64::NAN, f64::INFINITY, -0.0, 9.7] {
            let mut x = x;
            for _ in 0..10_000 {
                match simpler_numbers(x).last() {
                    None => break,
                    Some(next) => {
                        assert!(complexity(*next) < complexity(x), "{next} from {x}");
                        x = *next;
                    }
                }
            }
            assert_eq!(x.to_bits(), 0.0_f64.to_bits());
        }
    }

    #[test]
    fn zero_then_units_then_decimals() {
        let ordered = [0.0, -0.0, 1.0, -1.0, 2.0, 10.0, 0.5, 0.25, 0.123_456_789, f64::INFINITY];
        assert!(ordered.windows(2).all(|pair| complexity(pair[0]) < complexity(pair[1])));
    }
}
