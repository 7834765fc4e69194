//! Masks that mark other tokens than they should.

use super::super::{Row, reference};
use super::Fault;
use super::cells::{changed, cut, outputs, right};
use super::cutting::boundary;

pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "response-mask-sliced-twice",
            "the prompt's length is taken off a mask that begins at the completion already",
        )
        .seen("trl #1718 (3bf94492a)")
        .gives(&[
            |case, options, _| boundary(case, options, |_, _, prompt| 2 * prompt),
            |case, options, _| {
                let rows = cut(case, options);
                changed(case, options, |row, cells| {
                    let Row { prompt, completion } = &rows[row];
                    let left = completion.len().saturating_sub(prompt.len());
                    for cell in cells.iter_mut().flatten().filter(|cell| cell.of_completion) {
                        cell.of_completion = (cell.position as usize) < prompt.len() + left;
                        cell.trained &= cell.of_completion;
                    }
                })
            },
        ]),
        Fault::new(
            "second-half-unmasked",
            "2N rows are zipped with N prompt lengths: prompts of the second half are trained",
        )
        .seen("OpenRLHF #294 (6106fb22)")
        .gives(&[
            |case, options, _| {
                let half = case.prompts.nrows().div_ceil(2);
                boundary(case, options, |row, _, prompt| if row < half { prompt } else { 0 })
            },
            |case, options, _| {
                let half = case.prompts.nrows() / 2;
                boundary(case, options, |row, _, prompt| if row < half { prompt } else { 0 })
            },
        ]),
        Fault::new(
            "empty-answer-takes-everything",
            "x[-n:] with n = 0 is all of x: an empty completion is its prompt",
        )
        .seen("slime 6b4ccae5d")
        .gives(&[|case, options, _| {
            let rows = cut(case, options);
            boundary(
                case,
                options,
                |row, _, prompt| {
                    if rows[row].completion.is_empty() { 0 } else { prompt }
                },
            )
        }]),
        Fault::new(
            "boundary-of-the-first-row",
            "the length of the first row's prompt is taken for all of them",
        )
        .seen("plausible: prompt_lengths[0] where a batch came from one prompt")
        .gives(&[|case, options, _| {
            let first = cut(case, options)[0].prompt.len();
            boundary(case, options, |_, _, _| first)
        }]),
        Fault::new(
            "boundary-of-the-longest-prompt",
            "the length of the longest prompt is taken for all of them",
        )
        .seen("plausible: `mask[:, prompts.shape[1]:]` where each row goes on behind its prompt")
        .gives(&[|case, options, _| {
            let longest = cut(case, options).iter().map(|row| row.prompt.len()).max();
            boundary(case, options, |_, _, _| longest.unwrap_or(0))
        }]),
        Fault::new(
            "boundary-one-late",
            "the first token of a completion is taken for the prompt's",
        )
        .seen("plausible: an end of the prompt that is inclusive on one side")
        .gives(&[|case, options, _| boundary(case, options, |_, _, prompt| prompt + 1)]),
        Fault::new(
            "boundary-one-early",
            "the last token of a prompt is taken for the completion's",
        )
        .seen("plausible: a mask for predictions, used for tokens")
        .gives(&[|case, options, _| {
            boundary(case, options, |_, _, prompt| prompt.saturating_sub(1))
        }]),
        Fault::new(
            "prompts-marked",
            "the completion mask marks the prompt, and not the completion",
        )
        .seen("plausible: a mask of what to leave out, taken for one of what counts")
        .gives(&[|case, options, _| {
            let mut output = reference::collate(case, options);
            if let (Some(mask), Some(tokens)) =
                (&mut output.completion_mask, &output.attention_mask)
            {
                mask.zip_mut_with(tokens, |of, token| *of = token - *of);
            }
            output
        }]),
        Fault::new("prompts-marked-too", "the completion mask marks every token")
            .seen("plausible: the attention mask passed on as the completion mask")
            .gives(&[|case, options, _| {
                let mut output = reference::collate(case, options);
                output.completion_mask = output.attention_mask.clone();
                output
            }]),
        Fault::new("pads-marked", "the completion mask marks the padding behind a completion too")
            .seen("plausible: mask[prompt_length:] = 1, without an end")
            .gives(&[|case, options, _| {
                let rows = cut(case, options);
                let grid = right(case, options);
                let mut output = outputs(&grid, options);
                if let Some(mask) = &mut output.completion_mask {
                    for ((row, column), flag) in mask.indexed_iter_mut() {
                        let before = grid[row][..column].iter().flatten().count();
                        let behind = before >= rows[row].length();
                        *flag = if behind { 1.0 } else { *flag };
                    }
                }
                output
            }]),
        Fault::new("attention-by-token-value", "whatever has the id of the pad is not attended")
            .seen("plausible: input_ids != pad, where the pad is the end of the sequence too")
            .gives(&[|case, options, _| {
                let mut output = reference::collate(case, options);
                if let (Some(mask), Some(ids)) = (&mut output.attention_mask, &output.input_ids) {
                    mask.zip_mut_with(ids, |flag, id| {
                        *flag = f64::from(*id != options.pad as f64);
                    });
                }
                output
            }]),
        Fault::new(
            "completion-mask-by-token-value",
            "a token with the id of the pad is none of the completion's (and has no label)",
        )
        .seen("plausible: completion_ids != pad, where the pad is the end of the sequence too")
        .gives(&[
            |case, options, _| {
                changed(case, options, |_, cells| {
                    for cell in cells.iter_mut().flatten() {
                        cell.of_completion &= cell.id != options.pad;
                    }
                })
            },
            |case, options, _| {
                changed(case, options, |_, cells| {
                    for cell in cells.iter_mut().flatten() {
                        cell.of_completion &= cell.id != options.pad;
                        cell.trained &= cell.id != options.pad;
                    }
                })
            },
        ]),
        Fault::new("completions-not-attended", "the attention mask ends with the prompt")
            .seen("plausible: the tokenizer's mask of the prompt, not extended")
            .gives(&[|case, options, _| {
                let mut output = reference::collate(case, options);
                if let (Some(mask), Some(of)) =
                    (&mut output.attention_mask, &output.completion_mask)
                {
                    mask.zip_mut_with(of, |flag, of| *flag -= of);
                }
                output
            }]),
        Fault::new("pads-attended", "the attention mask is 1 everywhere, or 0 at tokens")
            .seen("plausible: ones_like(input_ids), or a mask of padding for one of tokens")
            .gives(&[
                |case, options, _| {
                    let mut output = reference::collate(case, options);
                    output.attention_mask = output.attention_mask.map(|mask| mask * 0.0 + 1.0);
                    output
                },
                |case, options, _| {
                    let mut output = reference::collate(case, options);
                    output.attention_mask = output.attention_mask.map(|mask| 1.0 - mask);
                    output
                },
            ]),
    ]
}
