//! What several rules ask of the lengths of completions.

use crate::rules::Unjudged;
use crate::runs::Run;
use crate::runs::series::Series;
use crate::runs::statistics::{Statistics, TREND_POINTS, mean};

/// Where so many completions are cut the lengths are too much, even if a score of what is meant
/// rises.
pub const MANY_CUT: f64 = 0.3;

/// The lengths, if they double: the last fifth is at least twice the first, and they rise.
///
/// # Errors
/// The run logs too few of them.
pub fn doubled(run: &Run) -> Result<Option<Statistics>, Unjudged> {
    let lengths = run.figures("length.mean", TREND_POINTS)?;
    let doubled = lengths.rises() && lengths.last >= 2.0 * lengths.first;
    Ok(Some(lengths).filter(|_| doubled))
}

/// The share of completions that is cut at the end, where that rises, by a twentieth and to a tenth
/// at least: cutting that came with the lengths.
pub fn newly_cut(run: &Run) -> Option<f64> {
    let cut = run.statistics("length.clipped")?;
    let (first, last) = (mean(&cut.values[..cut.window]), mean(cut.tail()));
    (cut.rises() && last >= 0.1 && last - first >= 0.05).then_some(last)
}

/// The shortest length that may be a limit.
const SHORTEST_LIMIT: f64 = 32.0;

/// The largest mean length, if it may be a limit at which completions are cut: a whole number, as a
/// mean is one hardly ever unless all of them have it, of 32 at least, and no less than the limit
/// where that is set.
pub fn ceiling(run: &Run, lengths: &Series) -> Option<f64> {
    let most = lengths.max();
    let whole = (most - most.round()).abs() <= 1e-6 * most + lengths.resolution;
    let limit = run.settings.number("length.completion");
    let reached = limit.is_none_or(|limit| most >= limit - lengths.resolution);
    // Where all are logged as whole numbers they are whole for no reason, unless they never change.
    let values = lengths.values();
    let tells = values.iter().any(|x| x.fract() != 0.0) || lengths.is_constant();
    (whole && reached && tells && most >= SHORTEST_LIMIT).then(|| most.round())
}
