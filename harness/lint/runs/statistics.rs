//! What is said of a series in figures. Steps only label the axis: scaling them changes nothing.

use crate::runs::series::Series;

/// Figures of the finite values of a series, in the order of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The values.
    pub values: Vec<f64>,
    /// How many of them make a beginning, a middle or an end: a fifth, 3 to 50.
    pub window: usize,
    /// The median of the first window.
    pub first: f64,
    /// The median of the window in the middle.
    pub mid: f64,
    /// The median of the last window.
    pub last: f64,
    /// The deviation of one value: 1.4826 · MAD(Δx)/√2, or std(Δx)/√2 where that is 0.
    pub sigma: f64,
    /// The standard error of a difference of two windows: 1.25 σ √(2/w).
    pub se: f64,
    /// (last − first)/se; 0 where nothing changes, infinite where se alone is 0.
    pub z: f64,
    /// The same over windows of a whole fifth, where that is more than 50 values.
    pub z_fifths: f64,
    /// Kendall's τ of the means of at most 100 equal blocks.
    pub tau: f64,
}

/// Trends of fewer values than this are not judged.
pub const TREND_POINTS: usize = 20;

impl Statistics {
    /// Figures of a series; `None` where it has no finite value.
    pub fn of(series: &Series) -> Option<Statistics> {
        Statistics::of_values(series.values())
    }

    /// Figures of some finite values; `None` where there are none.
    pub fn of_values(values: Vec<f64>) -> Option<Statistics> {
        let n = values.len();
        (n > 0).then(|| Statistics::over(values, n.div_ceil(5).clamp(3, 50).min(n)))
    }

    /// The same over windows of a whole fifth: a change that the noise of fifty values hides shows
    /// in more of them, as long as it lasts.
    pub fn over_fifths(self) -> Statistics {
        let fifth = self.n().div_ceil(5).max(self.window);
        Statistics::over(self.values, fifth)
    }

    fn over(values: Vec<f64>, window: usize) -> Statistics {
        let n = values.len();
        let start = (n - window) / 2;
        let first = median(&values[..window]);
        let mid = median(&values[start..start + window]);
        let last = median(&values[n - window..]);
        let sigma = scatter(&values);
        let error = |window: usize| 1.25 * sigma * (2.0 / window as f64).sqrt();
        let errors = |change: f64, se: f64| if change == 0.0 { 0.0 } else { change / se };
        let se = error(window);
        let z = errors(last - first, se);
        let fifth = n.div_ceil(5);
        let z_fifths = match fifth > window {
            true => {
                let change = median(&values[n - fifth..]) - median(&values[..fifth]);
                errors(change, error(fifth))
            }
            false => z,
        };
        let tau = kendall(&blocks(&values, 100));
        Statistics { values, window, first, mid, last, sigma, se, z, z_fifths, tau }
    }

    /// The figures, and those over whole fifths where these are longer windows.
    pub fn widths(self) -> impl Iterator<Item = Statistics> {
        let is_long = self.n().div_ceil(5) > self.window;
        let fifths = is_long.then(|| self.clone().over_fifths());
        std::iter::once(self).chain(fifths)
    }

    /// By how many standard errors the end is above the beginning, in the windows in which that is
    /// clearest: the more values there are, the smaller a change that shows.
    pub fn trend(&self) -> f64 {
        if self.z_fifths.abs() > self.z.abs() { self.z_fifths } else { self.z }
    }

    /// How many values there are.
    pub fn n(&self) -> usize {
        self.values.len()
    }

    /// The last window.
    pub fn tail(&self) -> &[f64] {
        &self.values[self.n() - self.window..]
    }

    /// Whether it rises: 20 values at least, a trend of 4 standard errors, τ ≥ 0.2.
    pub fn rises(&self) -> bool {
        self.n() >= TREND_POINTS && self.trend() >= 4.0 && self.tau >= 0.2
    }

    /// Whether it falls: the mirror image.
    pub fn falls(&self) -> bool {
        self.n() >= TREND_POINTS && self.trend() <= -4.0 && self.tau <= -0.2
    }

    /// Whether it rises, and still does in the second half: by two standard errors.
    pub fn still_rises(&self) -> bool {
        let more = |one: Statistics| one.last - one.mid >= 2.0 * one.se;
        self.rises() && self.clone().widths().any(more)
    }

    /// The mean of the first few values, a fifth of a window and no less than 3, and the standard
    /// error of its difference to a window: a change may be over before the first window is.
    pub fn start(&self) -> (f64, f64) {
        let few = (self.window / 5).max(3).min(self.n());
        let parts = 1.0 / few as f64 + 1.0 / self.window as f64;
        (mean(&self.values[..few]), 1.25 * self.sigma * parts.sqrt())
    }

    /// By how much its peak is above its beginning, where that is more than 3 standard errors and
    /// this much: above its first window, or above its start.
    pub fn gain(&self, least: f64) -> Option<f64> {
        let (peak, _) = self.peak();
        let (start, se) = self.start();
        // Where the first window itself falls its mean is above its median, which is no gain.
        let first = self.first.max(mean(&self.values[..self.window]));
        let gains = [(peak - first, self.se), (peak - start, se)];
        let real = gains.into_iter().filter(|(gain, se)| *gain >= (3.0 * se).max(least));
        real.map(|(gain, _)| gain).reduce(f64::max)
    }

    /// The largest mean over a window that moves, and where that begins.
    pub fn peak(&self) -> (f64, usize) {
        let higher = |best: (f64, usize), (at, mean): (usize, f64)| {
            if mean > best.0 { (mean, at) } else { best }
        };
        self.moving().enumerate().fold((f64::NEG_INFINITY, 0), higher)
    }

    /// The means over a window that moves by one value at a time.
    pub fn moving(&self) -> impl DoubleEndedIterator<Item = f64> + ExactSizeIterator {
        self.values.windows(self.window).map(mean)
    }

    /// Where the first window begins from which on all moving means are as meant; the last window
    /// where not even its mean is.
    pub fn since(&self, is_meant: impl Fn(f64) -> bool) -> usize {
        let unlike = self.moving().rposition(|mean| !is_meant(mean));
        unlike.map_or(0, |at| (at + 1).min(self.n() - self.window))
    }
}

/// A figure as sentences show it: three digits that count.
pub fn short(x: f64) -> String {
    let magnitude = x.abs();
    if magnitude >= 1e6 && x.is_finite() {
        return format!("{x:.1e}");
    }
    if magnitude >= 100.0 || x == 0.0 || !x.is_finite() {
        return format!("{x:.0}");
    }
    if magnitude < 1e-3 {
        return format!("{x:.1e}");
    }
    let digits = (2.0 - magnitude.log10().floor()).max(0.0) as usize;
    let text = format!("{x:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The median of some values; NaN where there are none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The mean of some values; NaN where there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The deviation of some values around their mean; NaN where there are none.
pub fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    mean(&values.iter().map(|value| (value - centre).powi(2)).collect::<Vec<f64>>()).sqrt()
}

/// The value below which the share `q` of the values lies, by linear interpolation; NaN where there
/// are none.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] * (1.0 - part) + sorted[above] * part
}

/// A share as sentences show it: `0.81`, `all`.
pub fn proportion(x: f64) -> String {
    if x >= 0.9995 { "all".to_owned() } else { short(x) }
}

/// The deviation of one value around a trend, from the differences of neighbours.
fn scatter(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return 0.0;
    }
    let middle = median(&steps);
    let away: Vec<f64> = steps.iter().map(|step| (step - middle).abs()).collect();
    let robust = 1.4826 * median(&away);
    if robust > 0.0 {
        return robust / 2.0_f64.sqrt();
    }
    deviation(&steps) / 2.0_f64.sqrt()
}

/// The deviation of one value where there are few: the median of few differences may be small by
/// chance, so it is not less than their standard deviation but for the largest of them, which may
/// be the change that is looked for.
pub fn cautious_sigma(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = median(&steps);
    steps.sort_by(|a, b| (a - middle).abs().total_cmp(&(b - middle).abs()));
    steps.pop();
    let few = if steps.is_empty() { 0.0 } else { deviation(&steps) / 2.0_f64.sqrt() };
    scatter(values).max(few)
}

/// The means of at most `most` blocks of equal size, the last one smaller.
pub fn blocks(values: &[f64], most: usize) -> Vec<f64> {
    values.chunks(values.len().div_ceil(most).max(1)).map(mean).collect()
}

/// Kendall's τ-a of values against their order: ties count as neither.
pub fn kendall(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 0.0;
    }
    let mut sum = 0_i64;
    for (index, earlier) in values.iter().enumerate() {
        for later in &values[index + 1..] {
            sum += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    2.0 * sum as f64 / (n * (n - 1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::rules::trial1::noise;

    fn of(values: &[f64]) -> Statistics {
        Statistics::of_values(values.to_vec()).expect("there are values")
    }

    #[test]
    fn figures_have_three_digits_or_a_power_of_ten() {
        let shown = [0.0, 1234.4, 999_999.0, 1.069e24, -3e6, f64::INFINITY].map(short);
        assert_eq!(shown, ["0", "1234", "999999", "1.1e24", "-3.0e6", "inf"]);
    }

    #[test]
    fn a_window_is_a_fifth_but_no_less_than_three_and_no_more_than_fifty() {
        let window = |n: usize| of(&vec![0.0; n]).window;
        assert_eq!(
            [1, 2, 3, 15, 16, 20, 21, 250, 251, 5000].map(window),
            [1, 2, 3, 3, 4, 4, 5, 50, 50, 50]
        );
    }

    #[test]
    fn beginning_middle_and_end_are_medians_of_windows() {
        let figures = of(&[1.0, 9.0, 2.0, 4.0, 7.0, 5.0, 6.0, 30.0, 10.0, 20.0]);
        assert_eq!([figures.first, figures.mid, figures.last], [2.0, 5.0, 20.0]);
        assert_eq!(figures.tail(), [30.0, 10.0, 20.0]);
    }

    #[test]
    fn scatter_comes_from_the_differences_of_neighbours() {
        // Differences 1, -1, 3, -2, 1: median 1, distances 0, 2, 2, 3, 0, of which the median is 2.
        let figures = of(&[0.0, 1.0, 0.0, 3.0, 1.0, 2.0]);
        assert!((figures.sigma - 1.4826 * 2.0 / 2.0_f64.sqrt()).abs() < 1e-12);
        let se = 1.25 * figures.sigma * (2.0_f64 / 3.0).sqrt();
        assert!((figures.se - se).abs() < 1e-12);
        assert!((figures.z - 2.0 / se).abs() < 1e-12, "the median of 3, 1, 2 less that of 0, 1, 0");
    }

    #[test]
    fn where_most_differences_are_equal_their_standard_deviation_counts() {
        // Differences 0, 0, 4, 0: mean 1, squares 1, 1, 9, 1.
        let figures = of(&[1.0, 1.0, 1.0, 5.0, 5.0]);
        assert!((figures.sigma - (3.0_f64 / 2.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_never_changes_has_no_trend_and_what_grows_evenly_an_infinite_one() {
        let still = of(&[2.0; 30]);
        assert_eq!([still.sigma, still.se, still.z, still.tau], [0.0; 4]);
        let even: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(of(&even).z, f64::INFINITY);
        assert!(of(&even).rises() && !of(&even).falls());
    }

    #[test]
    fn a_small_change_shows_in_enough_values() {
        let rise = |n: usize| {
            let value = |i: usize| 0.5 * i as f64 / n as f64 + noise(1, i);
            of(&(0..n).map(value).collect::<Vec<f64>>())
        };
        let [few, many] = [rise(250), rise(5000)];
        assert!(!few.rises() && few.trend() == few.z && few.z < 4.0);
        assert!(many.rises() && many.z < 4.0 && many.trend() == many.z_fifths);
        let windows: Vec<usize> = many.widths().map(|one| one.window).collect();
        assert_eq!((few.widths().count(), windows), (1, vec![50, 1000]));
    }

    #[test]
    fn nineteen_values_are_no_trend() {
        let down = |n: i32| of(&(0..n).map(|i| f64::from(-i)).collect::<Vec<_>>());
        assert!(!down(19).falls() && down(20).falls());
    }

    #[test]
    fn kendall_counts_pairs() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(kendall(&[3.0, 1.0, 2.0]), -1.0 / 3.0);
        assert_eq!(kendall(&[1.0, 1.0, 2.0]), 2.0 / 3.0);
        assert_eq!(kendall(&[1.0]), 0.0);
    }

    #[test]
    fn blocks_are_equal_but_for_the_last() {
        assert_eq!(blocks(&[1.0, 3.0, 5.0, 7.0, 9.0], 3), [2.0, 6.0, 9.0]);
        assert_eq!(blocks(&[1.0, 3.0], 100), [1.0, 3.0]);
        assert_eq!(blocks(&vec![0.0; 101], 100).len(), 51);
    }

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), 2.5);
        assert_eq!(quantile(&[0.0, 10.0], 0.95), 9.5);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn the_peak_is_the_highest_window_and_since_is_the_last_stretch() {
        let figures = of(&[0.0, 0.0, 3.0, 6.0, 3.0, 0.0, 0.0, 0.0]);
        assert_eq!(figures.peak(), (4.0, 2));
        assert_eq!(figures.since(|mean| mean < 3.5), 3);
        assert_eq!(figures.since(|mean| mean < 9.0), 0);
        assert_eq!(figures.since(|mean| mean > 9.0), 5);
    }

    #[test]
    fn a_gain_that_is_over_before_the_first_window_is_counts() {
        let quick: Vec<f64> = (0..100).map(|i| f64::from(i.min(8))).collect();
        let figures = of(&quick);
        assert_eq!((figures.first, figures.start().0, figures.peak().0), (8.0, 1.5, 8.0));
        assert_eq!((figures.gain(1.0), figures.gain(7.0)), (Some(6.5), None));
        let falls: Vec<f64> = (0..100).map(|i| (-0.2 * f64::from(i)).exp()).collect();
        assert_eq!(of(&falls).gain(0.01), None);
    }

    #[test]
    fn scale_and_origin_of_the_values_change_no_trend() {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i % 7) + f64::from(i) / 3.0).collect();
        let other: Vec<f64> = values.iter().map(|x| 8.0 * x - 64.0).collect();
        let (one, other) = (of(&values), of(&other));
        assert!((one.z - other.z).abs() < 1e-9);
        assert_eq!((one.tau, one.rises()), (other.tau, other.rises()));
    }

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 1.0, 0.1734, 12.345, 1023.6, 0.00042, -2.5, 100.0].map(short);
        assert_eq!([0.81, 0.9996, 0.0].map(proportion), ["0.81", "all", "0"]);
        assert_eq!(shown, ["0", "1", "0.173", "12.3", "1024", "4.2e-4", "-2.5", "100"]);
    }
}
