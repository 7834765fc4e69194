//! Known wrong behaviours of `model-forward`: the model of the reference with one thing wrong.

use ndarray::{Array3, Axis, s};

use super::reference::{Model, RIGHT, position, sees, starts};
use super::{ModelForward, ModelForwardCase, ModelForwardOutput, Options};
use shakedown_core::contract::fault::Variant;
use shakedown_core::value::place::Dtype;

type Fault = shakedown_core::contract::fault::Fault<ModelForward>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [positions(), attention(), packed(), cache(), batch()];
    themes.into_iter().flatten().collect()
}

/// A model that is wrong in the same way with a cache and without one.
fn model(model: Model) -> Variant<ModelForward> {
    Variant::gives(move |case, options, dtype| {
        let logits = model.logits(case, options, dtype);
        ModelForwardOutput { cached_logits: Some(logits.clone()), logits }
    })
}

/// A model that is right without a cache, and wrong with one.
fn cached(model: Model) -> Variant<ModelForward> {
    Variant::gives(move |case, options, dtype| ModelForwardOutput {
        logits: RIGHT.logits(case, options, dtype),
        cached_logits: Some(model.logits(case, options, dtype)),
    })
}

/// The logits of a right model, changed.
fn changed(change: fn(&ModelForwardCase, Array3<f64>) -> Array3<f64>) -> Variant<ModelForward> {
    Variant::gives(move |case: &ModelForwardCase, options: &Options, dtype: Dtype| {
        let logits = change(case, RIGHT.logits(case, options, dtype));
        ModelForwardOutput { cached_logits: Some(logits.clone()), logits }
    })
}

fn positions() -> Vec<Fault> {
    vec![
        Fault::new(
            "positions-count-the-padding",
            "the position of a token is its column, padding before it included",
        )
        .seen("trlx #108 (8edcd9d): default positions under left padding")
        .made_of([model(Model { position: |_, _, column| column as f64, ..RIGHT })]),
        Fault::new("positions-of-the-first-row", "all rows have the positions of the first one")
            .seen("unsloth #1066, #3699, #4100; transformers #22161, #18388")
            .made_of([model(Model {
                position: |case, _, column| position(case, 0, column),
                ..RIGHT
            })]),
        Fault::new(
            "positions-scaled-by-the-length",
            "positions are scaled by the number of columns of the batch",
        )
        .seen("transformers #25104: the base of dynamic NTK follows the length of the call")
        .made_of([model(Model {
            position: |case, row, column| {
                position(case, row, column) * (1.0 + case.input_ids.ncols() as f64 / 8.0)
            },
            ..RIGHT
        })]),
    ]
}

fn attention() -> Vec<Fault> {
    vec![
        Fault::new("attention-mask-ignored", "padding is seen as if it were tokens")
            .seen("a call of the model without `attention_mask`")
            .made_of([model(Model {
                sees: |case, row, [from, to]| to <= from && starts(case, row, to, from) == 0,
                ..RIGHT
            })]),
        Fault::new(
            "attention-mask-one-late",
            "the attention mask is shifted by one column: the last padding on the left is seen",
        )
        .seen("the attention mask of the labels, which are shifted")
        .made_of([model(Model {
            sees: |case, row, [from, to]| {
                let next = (to + 1).min(case.input_ids.ncols() - 1);
                to <= from && case.attention_mask[[row, next]] && starts(case, row, to, from) == 0
            },
            ..RIGHT
        })]),
        Fault::new("next-token-seen", "a token sees the one behind it")
            .seen("`torch.tril(mask, 1)`: the diagonal above is kept")
            .made_of([model(Model {
                sees: |case, row, [from, to]| {
                    to <= from + 1
                        && case.attention_mask[[row, to]]
                        && starts(case, row, to.min(from), from.max(to)) == 0
                },
                ..RIGHT
            })]),
        Fault::new("attends-both-ways", "a token sees all tokens of its sequence")
            .seen("a mask of four dimensions in place of the causal one, not added to it")
            .made_of([model(Model {
                sees: |case, row, [from, to]| {
                    case.attention_mask[[row, to]]
                        && starts(case, row, to.min(from), from.max(to)) == 0
                },
                ..RIGHT
            })]),
    ]
}

fn packed() -> Vec<Fault> {
    const UNDER: &str = "{positions: given, packed: true}";
    vec![
        Fault::new("packed-sequences-seen", "a sequence sees those before it in its row")
            .seen("transformers #46634: positions beside an attention mask of ones are not read")
            .under(UNDER)
            .made_of([model(Model {
                sees: |case, row, [from, to]| to <= from && case.attention_mask[[row, to]],
                ..RIGHT
            })]),
        Fault::new("last-sequence-seen", "a sequence sees the last token of the one before it")
            .seen("boundaries between packed sequences that are one too early")
            .under(UNDER)
            .made_of([model(Model {
                sees: |case, row, [from, to]| {
                    let crossed = starts(case, row, to, from);
                    let last = crossed == 1 && starts(case, row, to, to + 1) == 1;
                    to <= from && case.attention_mask[[row, to]] && (crossed == 0 || last)
                },
                ..RIGHT
            })]),
        Fault::new("position-ids-ignored", "positions run on through the sequences of a row")
            .seen("nanoVLM #201, #204: a packed sequence begins where the one before ends")
            .under(UNDER)
            .made_of([model(Model {
                position: |case, row, column| {
                    let before = case.attention_mask.row(row);
                    before.iter().take(column).filter(|kept| **kept).count() as f64
                },
                ..RIGHT
            })]),
    ]
}

fn cache() -> Vec<Fault> {
    vec![
        Fault::new(
            "cache-positions-from-zero",
            "with a cache, the position of each token is 0: those in the cache are not counted",
        )
        .seen("mosaicml/examples #244: positions of a call that do not count the cache")
        .made_of([cached(Model { position: |_, _, _| 0.0, ..RIGHT })]),
        Fault::new("cache-forgets-the-first-token", "with a cache, the first token is not seen")
            .seen("`past[:, 1:]`: one entry of the cache is cut off")
            .made_of([cached(Model {
                sees: |case, row, [from, to]| {
                    let first = case.attention_mask.row(row).iter().position(|kept| *kept);
                    (from == to || first != Some(to)) && sees(case, row, [from, to])
                },
                ..RIGHT
            })]),
        Fault::new("cache-without-the-mask", "with a cache, padding is seen")
            .seen("an attention mask of the new token alone, without those in the cache")
            .made_of([cached(Model {
                sees: |case, row, [from, to]| to <= from && starts(case, row, to, from) == 0,
                ..RIGHT
            })]),
    ]
}

fn batch() -> Vec<Fault> {
    vec![
        Fault::new("statistic-of-the-batch", "the mean of all rows is subtracted from each")
            .seen("verl #4708 (c79055298): a layer that is left in training mode")
            .made_of([changed(|_, logits| {
                let mean = logits.mean_axis(Axis(0)).expect("a row");
                logits - mean.mapv(|mean| 0.5 * mean)
            })]),
        Fault::new(
            "empty-row-spreads-nan",
            "a row without a token makes the logits of all rows NaN",
        )
        .seen("mlx #2608: NaN of a row that is masked as a whole spreads")
        .under("{empty_rows: true}")
        .made_of([changed(|case, logits| {
            let rows = case.attention_mask.rows();
            let empty = rows.into_iter().any(|row| !row.iter().any(|kept| *kept));
            if empty { logits * f64::NAN } else { logits }
        })]),
        Fault::new("logits-one-late", "the logits in a column are those of the one before it")
            .seen("trl #2058 (a5b98fcf9): logits and tokens are shifted once more")
            .made_of([changed(|_, logits| {
                let mut late = logits.clone();
                let last = logits.dim().1 - 1;
                late.slice_mut(s![.., 1.., ..]).assign(&logits.slice(s![.., ..last, ..]));
                late.slice_mut(s![.., ..1, ..]).fill(0.0);
                late
            })]),
    ]
}
