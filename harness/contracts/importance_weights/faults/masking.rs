//! Tokens and rows that are taken for others, and what stands under the mask.

use ndarray::Array2;

use super::{Fault, Variant, after, rows};
use crate::importance_weights::reference;
use crate::importance_weights::{ImportanceWeightsCase, Options, Rejected, Select};

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("sampler-off-by-one", "a token is compared with the sampler's one position off")
            .seen("trl #2058: positions shifted in one of two forward passes")
            .on(&[
                |case, _| shift(&mut case.sampler_log_probs, 1),
                |case, _| shift(&mut case.sampler_log_probs, -1),
                |case, _| shift(&mut case.log_probs, 1),
            ]),
        Fault::new("sampler-of-another-row", "the sampler's rows are in another order")
            .seen("verl #1943, #1440: left in the order by length")
            .on(&[
                |case, _| turn(&mut case.sampler_log_probs, 1),
                |case, _| reverse(&mut case.sampler_log_probs),
            ]),
        Fault::new("sampler-of-the-first-row", "every row is compared with the sampler's first")
            .seen("mutation: a broadcast that was not meant")
            .on(&[|case, _| {
                let first = case.sampler_log_probs.row(0).to_owned();
                let rows = case.sampler_log_probs.rows_mut();
                rows.into_iter().for_each(|mut row| row.assign(&first));
            }]),
        Fault::new("mask-ignored", "what stands under the mask counts in the ratio of a row")
            .seen("mutation: the mask is applied to the weights alone, at the end")
            .under("{level: sequence}")
            .made_of([
                Variant::gives(|case: &ImportanceWeightsCase, options: &Options, dtype| {
                    let mut output = reference::weights(case, options, dtype);
                    let mut all = Options { select: Select::None, ..options.clone() };
                    (all.veto, all.drift) = (None, None);
                    let wider = reference::weights(&wider(case, false), &all, dtype);
                    let keep = output.keep.clone().unwrap_or_default();
                    for (at, _) in keep.indexed_iter().filter(|(_, keep)| **keep > 0.0) {
                        output.weights[at] = wider.weights[at];
                    }
                    output
                }),
                Variant::gives(|case: &ImportanceWeightsCase, options: &Options, dtype| {
                    // The sum takes in what is masked, and the number of tokens does not.
                    let mut sums = case.clone();
                    for (index, row) in rows(case, dtype).iter().enumerate() {
                        let Some(first) = row.columns.first() else { continue };
                        let all = case.log_probs.row(index).sum()
                            - case.sampler_log_probs.row(index).sum();
                        sums.log_probs[[index, *first]] += all - row.gaps.iter().sum::<f64>();
                    }
                    let mut output = reference::weights(&sums, options, dtype);
                    output.mismatch_kl = reference::weights(case, options, dtype).mismatch_kl;
                    output
                }),
            ]),
        Fault::new("certain-tokens-masked", "a token of log-probability 0 is taken for padding")
            .seen("mutation: the mask is made of what is not 0; pads are filled with 0")
            .on(&[
                |case, _| mask_zeros(&mut case.mask, &case.log_probs),
                |case, _| mask_zeros(&mut case.mask, &case.sampler_log_probs),
            ]),
        Fault::new("dropped-for-masked-tokens", "what stands under the mask may drop a row")
            .seen("mutation: `any` and `mean` over the padded row")
            .under("{veto: 0.1, drift: 0.25}")
            .made_of([Variant::gives(|case: &ImportanceWeightsCase, options: &Options, dtype| {
                let mut output = reference::weights(case, options, dtype);
                let wider = reference::weights(&wider(case, false), options, dtype);
                let (Some(keep), Some(more)) = (&mut output.keep, &wider.keep) else {
                    return output;
                };
                for (at, keep) in keep.indexed_iter_mut().filter(|(at, _)| more[*at] == 0.0) {
                    *keep = 0.0;
                    if options.rejected == Rejected::Zero {
                        output.weights[at] = 0.0;
                    }
                }
                output
            })]),
        Fault::new("one-token-more", "the column behind a row's last token counts")
            .seen("mutation: a completion mask that holds one token too many")
            .under("{level: sequence}")
            .made_of([over_padding()]),
        Fault::new("last-token-left-out", "a row's last token does not count")
            .seen("mutation: a mask that is shifted by one, so that the end of sequence is lost")
            .made_of([without(|columns| columns.last().copied())]),
        Fault::new("first-token-left-out", "a row's first token does not count")
            .seen("mutation: a mask that is shifted by one")
            .made_of([
                without(|columns| columns.first().copied()),
                without(|columns| columns.first().copied().filter(|column| *column == 0)),
            ]),
        Fault::new(
            "masked-weights-not-zeroed",
            "masked tokens weigh something where 0 is promised",
        )
        .seen("compare verl #1527: pads not zeroed again; exp of a masked 0 is 1")
        .made_of([
            after(|output, case, _, _| fill(&mut output.weights, &case.mask, |_| 1.0)),
            Variant::gives(|case: &ImportanceWeightsCase, options: &Options, dtype| {
                let mut output = reference::weights(case, options, dtype);
                fill(&mut output.weights, &case.mask, |at| {
                    let gap = case.log_probs[at] - case.sampler_log_probs[at];
                    if gap.is_finite() { gap.clamp(-5.0, 5.0).exp() } else { 1.0 }
                });
                output
            }),
        ]),
        Fault::new("keep-under-the-mask", "`keep` is true for masked tokens")
            .seen("mutation: what is kept, without the mask of what counts")
            .made_of([after(|output, case, _, _| {
                if let Some(keep) = &mut output.keep {
                    fill(keep, &case.mask, |_| 1.0);
                }
            })]),
        Fault::new(
            "masked-after-the-arithmetic",
            "masked by a product: NaN and infinities under the mask spoil their row",
        )
        .seen("trl #5594, there of a loss")
        .under("{level: sequence, masked_values: any}")
        .made_of([after(|output, case, _, _| {
            for (row, mut weights) in output.weights.rows_mut().into_iter().enumerate() {
                let both = case.log_probs.row(row).to_owned() - case.sampler_log_probs.row(row);
                if !both.iter().all(|gap| gap.is_finite()) {
                    weights.fill(f64::NAN);
                }
            }
        })]),
        Fault::new(
            "weights-of-the-next-token",
            "a token has the weight of its neighbour in the row",
        )
        .seen("mutation: `[:, 1:]` of one of two arrays")
        .made_of([
            after(|output, case, _, _| {
                shift(&mut output.weights, 1);
                fill(&mut output.weights, &case.mask, |_| 0.0);
            }),
            after(|output, case, _, _| {
                shift(&mut output.weights, -1);
                fill(&mut output.weights, &case.mask, |_| 0.0);
            }),
        ]),
        Fault::new("weights-of-the-next-row", "a row has the weights of another")
            .seen("verl #1943: outputs left in the order by length")
            .made_of([after(|output, case, _, _| {
                turn(&mut output.weights, 1);
                fill(&mut output.weights, &case.mask, |_| 0.0);
            })]),
        Fault::new(
            "row-weight-on-the-last-token",
            "the weight of a row stands at its last token alone",
        )
        .seen("mutation: an outcome is written where the end of sequence is")
        .under("{level: sequence}")
        .made_of([after(|output, case, _, dtype| {
            for (index, row) in rows(case, dtype).iter().enumerate() {
                if let Some((_, others)) = row.columns.split_last() {
                    others.iter().for_each(|column| output.weights[[index, *column]] = 0.0);
                }
            }
        })]),
        Fault::new(
            "row-weight-shared-out",
            "the weight of a row is divided by the number of its tokens",
        )
        .seen("mutation: a mean of weights that are to multiply each token's loss")
        .under("{level: sequence}")
        .made_of([after(|output, case, _, dtype| {
            for (index, row) in rows(case, dtype).iter().enumerate() {
                let count = row.columns.len() as f64;
                for column in &row.columns {
                    output.weights[[index, *column]] /= count;
                }
            }
        })]),
    ]
}

/// Masks the tokens whose logarithm is 0.
fn mask_zeros(mask: &mut Array2<bool>, logarithms: &Array2<f64>) {
    mask.zip_mut_with(logarithms, |kept, x| *kept = *kept && *x != 0.0);
}

/// Moves the columns of an array, around its ends.
fn shift(array: &mut Array2<f64>, by: isize) {
    let columns = array.ncols();
    let from = |at: usize| (at as isize + by).rem_euclid(columns as isize) as usize;
    *array = Array2::from_shape_fn(array.dim(), |(row, column)| array[[row, from(column)]]);
}

/// Moves the rows of an array, around its ends.
fn turn(array: &mut Array2<f64>, by: usize) {
    let rows = array.nrows();
    *array = Array2::from_shape_fn(array.dim(), |(row, column)| array[[(row + by) % rows, column]]);
}

/// Turns the rows of an array upside down.
fn reverse(array: &mut Array2<f64>) {
    let rows = array.nrows();
    *array = Array2::from_shape_fn(array.dim(), |(row, column)| array[[rows - 1 - row, column]]);
}

/// Writes under the mask.
fn fill(array: &mut Array2<f64>, mask: &Array2<bool>, number: impl Fn((usize, usize)) -> f64) {
    for (at, _) in mask.indexed_iter().filter(|(_, kept)| !**kept) {
        array[at] = number(at);
    }
}

/// The case in which masked tokens count in rows with a token: all, or the one behind the last.
fn wider(case: &ImportanceWeightsCase, one_more: bool) -> ImportanceWeightsCase {
    let mut wider = case.clone();
    for mut mask in wider.mask.rows_mut() {
        match mask.iter().rposition(|kept| *kept) {
            Some(last) if one_more => {
                if let Some(next) = mask.get_mut(last + 1) {
                    *next = true;
                }
            }
            Some(_) => mask.fill(true),
            None => {}
        }
    }
    wider
}

/// The weights of a case in which the token behind the last one counts too. What it gives itself
/// is masked again.
fn over_padding() -> Variant {
    Variant::gives(|case: &ImportanceWeightsCase, options: &Options, dtype| {
        let mut output = reference::weights(case, options, dtype);
        let wider = reference::weights(&wider(case, true), options, dtype);
        for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
            output.weights[at] = wider.weights[at];
            if let (Some(keep), Some(wider)) = (&mut output.keep, &wider.keep) {
                keep[at] = wider[at];
            }
        }
        output
    })
}

/// The weights of a case in which a token of each row does not count.
fn without(token: fn(&[usize]) -> Option<usize>) -> Variant {
    Variant::gives(move |case: &ImportanceWeightsCase, options: &Options, dtype| {
        let mut fewer = case.clone();
        for (index, row) in rows(case, dtype).iter().enumerate() {
            if let Some(column) = token(&row.columns) {
                fewer.mask[[index, column]] = false;
            }
        }
        reference::weights(&fewer, options, dtype)
    })
}
