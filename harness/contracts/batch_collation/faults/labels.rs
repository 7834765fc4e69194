//! Labels of the wrong tokens, or in the wrong columns.

use ndarray::Array2;

use super::super::{BatchCollationCase, BatchCollationOutput, Options, Shift, reference};
use super::Fault;
use super::cells::{changed, shifted};

pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("pad-tokens-untrained", "whatever has the id of the pad has no label")
            .seen("transformers DataCollatorForLanguageModeling; trl #3200 (485852c94)")
            .gives(&[|case, options, _| {
                changed(case, options, |_, cells| {
                    for cell in cells.iter_mut().flatten() {
                        cell.trained &= cell.id != options.pad;
                    }
                })
            }]),
        Fault::new("labels-padded-with-the-pad", "padding has the id of the pad as its label")
            .seen("plausible: one padding value for inputs and labels")
            .gives(&[|case, options, _| {
                relabelled(case, options, |label, cell| match cell {
                    Some(_) => label,
                    None => options.pad,
                })
            }]),
        Fault::new(
            "prompts-labelled-with-the-pad",
            "prompts have the id of the pad as their label",
        )
        .seen("plausible: a prompt that is masked with the pad, not with `ignore`")
        .under("{pad: 3}")
        .gives(&[|case, options, _| {
            relabelled(case, options, |label, cell| match cell {
                Some(false) if label == options.ignore => options.pad,
                _ => label,
            })
        }]),
        Fault::new("labels-are-the-inputs", "every column has its id as its label, pads and all")
            .seen("plausible: labels = input_ids.clone()")
            .gives(&[|case, options, _| {
                let mut output = reference::collate(case, options);
                output.labels = output.input_ids.as_ref().map(|ids| match options.shift {
                    Shift::Next => shifted(ids, 1, options),
                    Shift::None => ids.clone(),
                });
                output
            }]),
        Fault::new("last-token-untrained", "the last token of a completion has no label")
            .seen("plausible: labels[:-1] of a row that is shifted elsewhere")
            .gives(&[|case, options, _| {
                changed(case, options, |_, cells| {
                    if let Some(cell) = cells.iter_mut().rev().flatten().next() {
                        cell.trained = false;
                    }
                })
            }]),
        Fault::new("first-token-untrained", "the first token of a completion has no label")
            .seen("plausible: a shift that is made up for on the wrong side")
            .gives(&[|case, options, _| {
                changed(case, options, |_, cells| {
                    let mut cells = cells.iter_mut().flatten();
                    if let Some(cell) = cells.find(|cell| cell.of_completion) {
                        cell.trained = false;
                    }
                })
            }]),
        Fault::new("labels-shifted-twice", "labels stand two columns before their token")
            .seen("labels shifted by the collator and by the loss")
            .under("{shift: next}")
            .gives(&[|case, options, _| moved(case, options, 2)]),
        Fault::new("labels-shifted-the-other-way", "labels stand one column behind their token")
            .seen("plausible: labels[1:] = ids[:-1] for labels[:-1] = ids[1:]")
            .under("{shift: next}")
            .gives(&[|case, options, _| moved(case, options, -1)]),
        Fault::new(
            "first-label-behind-the-last",
            "the last column has the label of the first one: a roll, not a shift",
        )
        .seen("plausible: torch.roll(labels, -1, dims=1), without the last column")
        .under("{shift: next, train_on: all}")
        .gives(&[|case, options, _| {
            let mut output = reference::collate(case, options);
            let none = Options { shift: Shift::None, ..options.clone() };
            let own = reference::collate(case, &none).labels;
            if let (Shift::Next, Some(labels), Some(own)) = (options.shift, &mut output.labels, own)
            {
                let last = labels.ncols() - 1;
                for (row, first) in own.column(0).iter().enumerate() {
                    labels[[row, last]] = *first;
                }
            }
            output
        }]),
    ]
}

/// The batch with labels so many columns before their own.
fn moved(case: &BatchCollationCase, options: &Options, by: isize) -> BatchCollationOutput {
    let mut output = reference::collate(case, options);
    let none = Options { shift: Shift::None, ..options.clone() };
    let own = reference::collate(case, &none).labels;
    output.labels = own.map(|own| shifted(&own, by, options));
    output
}

/// The batch with other labels: of a label, and of its token whether it is of the completion.
fn relabelled(
    case: &BatchCollationCase,
    options: &Options,
    label: impl Fn(i64, Option<bool>) -> i64,
) -> BatchCollationOutput {
    let none = Options { shift: Shift::None, ..options.clone() };
    let mut output = reference::collate(case, &none);
    let fields = (&output.labels, &output.attention_mask, &output.completion_mask);
    if let (Some(labels), Some(tokens), Some(of_completion)) = fields {
        let labels = Array2::from_shape_fn(labels.dim(), |at| {
            let cell = (tokens[at] > 0.0).then_some(of_completion[at] > 0.0);
            label(labels[at] as i64, cell) as f64
        });
        output.labels = Some(match options.shift {
            Shift::Next => shifted(&labels, 1, options),
            Shift::None => labels,
        });
    }
    output
}
