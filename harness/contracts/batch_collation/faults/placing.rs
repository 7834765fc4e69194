//! Rows in the wrong columns, or in the wrong order; ids that are not held.

use super::super::{
    BatchCollationCase, BatchCollationOutput, Layout, Options, Row, reference, rows,
};
use super::Fault;
use super::cells::{Grid, cells, changed, cut, filled, outputs, placed, right};
use super::cutting::on_the_left;

pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("as-wide-as-the-inputs", "as many columns as prompts and completions have")
            .seen("plausible: a width taken from the buffers, not from what is in them")
            .gives(&[|case, options, _| {
                let mut grid = right(case, options);
                let width = case.prompts.ncols() + case.completions.ncols();
                filled(&mut grid, width, options);
                outputs(&grid, options)
            }]),
        Fault::new("inputs-side-by-side", "prompts and completions side by side, pads and all")
            .seen("plausible: torch.cat([prompts, completions], dim=1) where rows must be packed")
            .gives(&[|case, options, _| {
                let columns = case.prompts.ncols();
                let mut grid: Grid = Vec::new();
                for row in rows(case) {
                    let mut cells = cells(&row, options);
                    let at = row.prompt.len();
                    cells.splice(at..at, vec![None; columns - at]);
                    cells.resize(columns + case.completions.ncols(), None);
                    grid.push(cells);
                }
                outputs(&grid, options)
            }]),
        Fault::new(
            "rounded-past-a-multiple",
            "one more block of pads where the width fits already",
        )
        .seen("plausible: length + (multiple - length % multiple)")
        .under("{multiple_of: 2}")
        .gives(&[|case, options, _| {
            let rows = cut(case, options);
            let longest = rows.iter().map(Row::length).max().unwrap_or(0);
            let multiple = options.multiple_of.unwrap_or(1) as usize;
            let mut grid = placed(&rows, options);
            filled(&mut grid, longest + multiple - longest % multiple, options);
            outputs(&grid, options)
        }]),
        Fault::new(
            "rounded-down",
            "the width is rounded down, where that leaves a column; tokens are lost",
        )
        .seen("plausible: length // multiple * multiple")
        .under("{multiple_of: 2}")
        .gives(&[|case, options, _| {
            let rows = cut(case, options);
            let longest = rows.iter().map(Row::length).max().unwrap_or(0);
            let multiple = options.multiple_of.unwrap_or(1) as usize;
            let width = (longest / multiple * multiple).max(multiple);
            let mut grid = placed(&rows, options);
            for cells in &mut grid {
                let over = cells.len().saturating_sub(width);
                let from = if on_the_left(options) { over } else { 0 };
                *cells = cells[from..from + cells.len() - over].to_vec();
            }
            outputs(&grid, options)
        }]),
        Fault::new("filled-up-to-the-limit", "every batch is `max_length` columns wide")
            .seen("plausible: padding=\"max_length\" for padding=\"longest\"")
            .under("{max_length: 8}")
            .gives(&[|case, options, _| {
                let mut grid = right(case, options);
                filled(&mut grid, options.max_length.unwrap_or(0) as usize, options);
                outputs(&grid, options)
            }]),
        Fault::new(
            "longest-of-each-side",
            "as many columns as the longest prompt and the longest completion have together",
        )
        .seen("plausible: the width of two sides where there is one")
        .gives(&[|case, options, _| {
            let rows = cut(case, options);
            let longest = |length: fn(&Row) -> usize| rows.iter().map(length).max().unwrap_or(0);
            let width = longest(|row| row.prompt.len()) + longest(|row| row.completion.len());
            let mut grid = placed(&rows, options);
            filled(&mut grid, width, options);
            outputs(&grid, options)
        }]),
        Fault::new(
            "prompts-padded-behind",
            "prompts are filled up on the right: there are pads between them and completions",
        )
        .seen("TRL, OpenRLHF: a tokenizer whose padding_side was not set to left")
        .under("{layout: split}")
        .gives(&[|case, options, _| {
            let rows = cut(case, options);
            let prompt = rows.iter().map(|row| row.prompt.len()).max().unwrap_or(0);
            let mut grid: Grid = Vec::new();
            for row in &rows {
                let mut cells = cells(row, options);
                let at = row.prompt.len();
                cells.splice(at..at, vec![None; prompt - at]);
                grid.push(cells);
            }
            let width = right(case, options)[0].len();
            filled(&mut grid, width, &Options { layout: Layout::Right, ..options.clone() });
            outputs(&grid, options)
        }]),
        Fault::new(
            "completions-padded-before",
            "completions are filled up on the left too: there are pads before them",
        )
        .seen("plausible: one padding_side for prompts and completions")
        .under("{layout: split}")
        .gives(&[|case, options, _| {
            let rows = cut(case, options);
            let width = right(case, options)[0].len();
            let longest = rows.iter().map(|row| row.completion.len()).max().unwrap_or(0);
            let mut grid: Grid = Vec::new();
            for row in &rows {
                let mut cells = cells(row, options);
                let at = row.prompt.len();
                cells.splice(at..at, vec![None; longest - row.completion.len()]);
                grid.push(cells);
            }
            filled(&mut grid, width, &Options { layout: Layout::Left, ..options.clone() });
            outputs(&grid, options)
        }]),
        Fault::new("sorted-by-length", "rows come back in the order of their length")
            .seen("verl #1943, #1440: the same slip with other tensors")
            .gives(&[|case, options, _| {
                let mut rows = cut(case, options);
                rows.sort_by_key(|row| std::cmp::Reverse(row.length()));
                outputs(&placed(&rows, options), options)
            }]),
        Fault::new(
            "lengths-by-token-value",
            "a row ends before the pads at its end, tokens or not",
        )
        .seen("trl #3200 (485852c94), #6357 (707a7172e): lengths found by the id of the pad")
        .gives(&[
            |case, options, _| {
                of_rows(case, options, |row| {
                    stripped(&mut row.prompt, options);
                    stripped(&mut row.completion, options);
                })
            },
            |case, options, _| of_rows(case, options, |row| stripped(&mut row.completion, options)),
        ]),
        Fault::new("prompt-twice", "the completion of an empty one is its prompt again")
            .seen("plausible: completion or prompt, where an empty list is false")
            .gives(&[|case, options, _| {
                of_rows(case, options, |row| {
                    if row.completion.is_empty() {
                        row.completion = row.prompt.clone();
                    }
                })
            }]),
        Fault::new("completions-first", "prompts and completions are put together in turned order")
            .seen("plausible: two arguments exchanged")
            .gives(&[|case, options, _| {
                of_rows(case, options, |row| std::mem::swap(&mut row.prompt, &mut row.completion))
            }]),
        Fault::new("end-appended", "each completion has the pad behind it, as its end")
            .seen("plausible: an end of the sequence that the completion has already")
            .gives(&[|case, options, _| {
                of_rows(case, options, |row| row.completion.push(options.pad))
            }]),
        Fault::new("first-id-twice", "the first id of a prompt stands there twice")
            .seen("trl #2054: a `bos` of the template, and another one of the tokenizer")
            .gives(&[|case, options, _| {
                of_rows(case, options, |row| {
                    let first = row.prompt.first().copied();
                    row.prompt.splice(0..0, first);
                })
            }]),
        Fault::new("first-completion-token-lost", "a completion begins with its second token")
            .seen("plausible: a `bos` cut off that is not there")
            .gives(&[|case, options, _| {
                of_rows(case, options, |row| {
                    drop(row.completion.drain(..1.min(row.completion.len())))
                })
            }]),
        Fault::new("ids-in-sixteen-bits", "ids beyond 65535 wrap around")
            .seen("plausible: uint16 token files, for vocabularies of twice the size")
            .gives(&[|case, options, _| {
                let mut case = case.clone();
                case.prompts.mapv_inplace(|id| id & 0xffff);
                case.completions.mapv_inplace(|id| id & 0xffff);
                reference::collate(&case, options)
            }]),
        Fault::new("positions-by-column", "positions count columns, pads and all")
            .seen("models that make position_ids of the column, with rows filled up on the left")
            .under("{layout: left}")
            .gives(&[|case, options, _| {
                changed(case, options, |_, cells| {
                    for (column, cell) in cells.iter_mut().enumerate() {
                        if let Some(cell) = cell {
                            cell.position = column as i64;
                        }
                    }
                })
            }]),
        Fault::new("positions-from-one", "positions begin at 1")
            .seen("plausible: cumsum(attention_mask), without - 1")
            .gives(&[|case, options, _| {
                changed(case, options, |_, cells| {
                    cells.iter_mut().flatten().for_each(|cell| cell.position += 1);
                })
            }]),
        Fault::new("positions-restart", "positions begin again with the completion")
            .seen("plausible: an arange for each part, put side by side")
            .gives(&[|case, options, _| {
                let lengths: Vec<usize> =
                    cut(case, options).iter().map(|row| row.prompt.len()).collect();
                changed(case, options, |row, cells| {
                    for cell in cells.iter_mut().flatten().filter(|cell| cell.of_completion) {
                        cell.position -= lengths[row] as i64;
                    }
                })
            }]),
        Fault::new("positions-under-padding", "padding has position 1, or counts on, not 0")
            .seen("transformers: position_ids.masked_fill_(attention_mask == 0, 1)")
            .under("{pad_positions: zero}")
            .gives(&[
                |case, options, _| {
                    let mut output = reference::collate(case, options);
                    let (Some(positions), Some(mask)) =
                        (&mut output.position_ids, &output.attention_mask)
                    else {
                        return output;
                    };
                    positions.zip_mut_with(mask, |at, token| {
                        *at = if *token == 0.0 { 1.0 } else { *at }
                    });
                    output
                },
                |case, options, _| {
                    let mut output = reference::collate(case, options);
                    let (Some(positions), Some(mask)) =
                        (&mut output.position_ids, &output.attention_mask)
                    else {
                        return output;
                    };
                    for (mut positions, mask) in positions.rows_mut().into_iter().zip(mask.rows()) {
                        let mut count = 0.0;
                        for (at, token) in positions.iter_mut().zip(mask) {
                            count += token;
                            *at = f64::max(count - 1.0, 0.0);
                        }
                    }
                    output
                },
            ]),
    ]
}

/// Leaves out the pads at the end, which may be tokens.
fn stripped(ids: &mut Vec<i64>, options: &Options) {
    let last = ids.iter().rposition(|id| *id != options.pad);
    ids.truncate(last.map_or(0, |last| last + 1));
}

/// The outputs of rows that are others before they are cut.
fn of_rows(
    case: &BatchCollationCase,
    options: &Options,
    change: impl Fn(&mut Row),
) -> BatchCollationOutput {
    let mut rows = rows(case);
    rows.iter_mut().for_each(change);
    let rows: Vec<Row> = rows.iter().map(|row| row.cut(options)).collect();
    outputs(&placed(&rows, options), options)
}
