//! What is under the mask.

use super::{Fault, Step, always, changed, of_any, of_others};
use crate::metric_reduction::{MetricReductionCase, Options, Shard, Unit, joined, numbers};

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "integer-mask-as-index",
            "an integer mask indexes: it picks rows 0 and 1, once for each token",
        )
        .seen("verl #60 (d46eb7d80)")
        .made_of([
            of_others(|step| step.case.shards.iter().flat_map(rows_picked).collect()),
            of_any(|step| step.case.shards.iter().flat_map(rows_picked).collect()),
            of_any(|step| rows_picked(&joined(step.case))),
            of_any(|step| step.case.shards.iter().flat_map(cells_picked).collect()),
            of_any(|step| flat_picked(step.case)),
        ]),
        Fault::new("mask-ignored", "masked tokens count as all others do")
            .seen("trl #1987 (10f70fa33): an ignore index that is not honoured")
            .gives(&[|case, options, _| {
                let mut unmasked = case.clone();
                unmasked.shards.iter_mut().for_each(|part| part.mask.fill(true));
                Step::new(&unmasked, options).metrics().into()
            }]),
        Fault::new(
            "pads-among-the-extremes",
            "values times mask: the 0 of a masked token takes part in minimum and maximum",
        )
        .seen("`(x * mask).max()`; TRL's nanmin and nanmax replace by infinities instead")
        .made_of([changed(|step, metrics| {
            if step.case.shards.iter().any(|part| part.mask.iter().any(|kept| !*kept)) {
                (metrics.min, metrics.max) = (metrics.min.min(0.0), metrics.max.max(0.0));
            }
        })]),
        Fault::new(
            "pads-in-the-deviation",
            "the mean is over what counts; its distances are squared over padding too",
        )
        .seen("trlx, whiten of padded advantages")
        .made_of([changed(|step, metrics| {
            let pads = step.case.shards.iter().flat_map(|part| &part.mask);
            let pads = pads.filter(|kept| !**kept).count() as f64;
            let degrees = metrics.count - f64::from(step.options.ddof);
            let squares = metrics.std.powi(2) * degrees + pads * metrics.mean.powi(2);
            metrics.std = (squares / degrees).sqrt();
        })]),
        Fault::new("empty-rows-counted", "a row without a token is a number too: 0")
            .seen("verl #906 and slime's convention, taken for each other")
            .under("{unit: row-mean}")
            .made_of([
                always(|step, metrics| {
                    let rows = step.case.shards.iter().map(|part| part.mask.nrows());
                    metrics.count = rows.sum::<usize>() as f64;
                    metrics.mean = metrics.sum / metrics.count;
                }),
                of_any(|step| {
                    let rows = step.case.shards.iter().map(|part| part.mask.nrows());
                    let empty = rows.sum::<usize>().saturating_sub(step.all.len());
                    [step.all.clone(), vec![[0.0; 2]; empty]].concat()
                }),
            ]),
        Fault::new("targets-not-masked", "the targets of a row are those of its padding too")
            .seen("verl #3741, of rows; one of two columns is masked")
            .under("{unit: row-mean}")
            .made_of([changed(|step, metrics| {
                let part = |part: &Shard| Shard { values: part.targets.clone(), ..part.clone() };
                let targets = step.case.shards.iter().flat_map(|own| {
                    let rows = whole_rows(&part(own), step.options.unit);
                    let some = own.mask.rows().into_iter().map(|row| row.iter().any(|kept| *kept));
                    rows.into_iter()
                        .zip(some.collect::<Vec<_>>())
                        .filter_map(|(x, some)| some.then_some(x))
                });
                let all = step.all.iter().zip(targets).map(|(pair, target)| [pair[0], target]);
                metrics.explained = step.of(&all.collect::<Vec<_>>()).explained;
            })]),
        Fault::new("mask-as-a-prefix", "as many tokens as the mask has, from the first one on")
            .seen("lengths in place of masks, which have gaps for what a tool said")
            .under("{holes: true}")
            .gives(&[|case, options, _| {
                let mut prefix = case.clone();
                for part in &mut prefix.shards {
                    for mut row in part.mask.rows_mut() {
                        let length = row.iter().filter(|kept| **kept).count();
                        row.iter_mut().enumerate().for_each(|(at, kept)| *kept = at < length);
                    }
                }
                Step::new(&prefix, options).metrics().into()
            }]),
        Fault::new(
            "row-mean-over-its-width",
            "a row's mean is its sum over the width of the shard, padding included",
        )
        .seen("verl #3741; understand-r1-zero 14046dc")
        .under("{unit: row-mean}")
        .gives(&[|case, options, _| {
            let sums = Options { unit: Unit::RowSum, ..options.clone() };
            let step = Step::new(case, options);
            let shards = case.shards.iter().flat_map(|part| {
                let width = part.mask.ncols() as f64;
                numbers(part, &sums).into_iter().map(move |pair| pair.map(|x| x / width))
            });
            step.of(&shards.collect::<Vec<_>>()).into()
        }]),
    ]
}

/// What a mask of integers picks of rows: row 0 or 1, once for each token.
fn rows_picked(part: &Shard) -> Vec<[f64; 2]> {
    let last = part.mask.nrows() - 1;
    let picked = part.mask.iter().flat_map(|kept| {
        let row = usize::from(*kept).min(last);
        (0..part.mask.ncols()).map(move |at| [part.values[[row, at]], part.targets[[row, at]]])
    });
    picked.collect()
}

/// What a mask of integers picks of all tokens of a shard in one row: token 0 or 1.
fn cells_picked(part: &Shard) -> Vec<[f64; 2]> {
    let all: Vec<[f64; 2]> = part.values.iter().zip(&part.targets).map(|(x, t)| [*x, *t]).collect();
    part.mask.iter().map(|kept| all[usize::from(*kept).min(all.len() - 1)]).collect()
}

/// The same of all tokens of all shards in one row.
fn flat_picked(case: &MetricReductionCase) -> Vec<[f64; 2]> {
    let tokens = |part: &Shard| -> Vec<[f64; 2]> {
        part.values.iter().zip(&part.targets).map(|(x, t)| [*x, *t]).collect()
    };
    let all: Vec<[f64; 2]> = case.shards.iter().flat_map(tokens).collect();
    let masks = case.shards.iter().flat_map(|part| &part.mask);
    masks.map(|kept| all[usize::from(*kept).min(all.len() - 1)]).collect()
}

/// The mean or the sum of each row, with its padding.
fn whole_rows(part: &Shard, unit: Unit) -> Vec<f64> {
    let divisor = if unit == Unit::RowSum { 1.0 } else { part.mask.ncols() as f64 };
    part.values.rows().into_iter().map(|row| row.sum() / divisor).collect()
}
