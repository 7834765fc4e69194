//! Rows that are cut wrongly.

use super::super::{
    BatchCollationCase, BatchCollationOutput, Layout, Options, Row, Truncate, rows,
};
use super::Fault;
use super::cells::{Cell, Grid, changed, cut, cut_as, filled, outputs, placed};

pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "last-columns-kept",
            "rows are filled up first, then the last columns are kept: short rows lose tokens",
        )
        .seen("trl #3398 (8e8e62b38), #5305 (ee96845a9)")
        .under("{max_length: 3, truncate: keep-end}")
        .gives(&[|case, options, _| cut_when_filled(case, options, true)]),
        Fault::new(
            "first-columns-kept",
            "rows are filled up on the left first, then the first columns are kept",
        )
        .seen("trl #3398 (8e8e62b38), on the other side")
        .under("{layout: left, max_length: 3}")
        .gives(&[|case, options, _| cut_when_filled(case, options, false)]),
        Fault::new(
            "start-kept-for-the-end",
            "the prompt is cut first, then the first tokens of the completion stay, not its last",
        )
        .seen("trl d0d377aa8")
        .under("{max_length: 3, truncate: keep-end}")
        .gives(&[|case, options, _| {
            cut_as(case, options, |row, most| {
                let room = most.saturating_sub(row.completion.len());
                let prompt = &row.prompt[row.prompt.len() - room.min(row.prompt.len())..];
                let completion = &row.completion[..row.completion.len().min(most)];
                Row { prompt: prompt.to_vec(), completion: completion.to_vec() }
            })
        }]),
        Fault::new(
            "truncation-as-a-filter",
            "a row above the limit is thrown away: there is padding for it, or the next row",
        )
        .seen("axolotl #3401 (2b6f4a6c9)")
        .under("{max_length: 3}")
        .gives(&[
            |case, options, _| {
                let too_long = too_long(case, options);
                changed(case, options, |row, cells| {
                    if too_long[row] {
                        cells.fill(None);
                    }
                })
            },
            |case, options, _| {
                let too_long = too_long(case, options);
                let rows = cut(case, options);
                let mut grid = placed(&rows, options);
                let width = grid[0].len();
                let mut at = 0;
                grid.retain(|_| {
                    at += 1;
                    !too_long[at - 1]
                });
                grid.resize(rows.len(), vec![None; width]);
                outputs(&grid, options)
            },
        ]),
        Fault::new(
            "one-length-checked",
            "a row is too long only where its prompt is by itself, or its completion",
        )
        .seen("open-instruct #1597 (21e092b16), 23fdaf139")
        .under("{max_length: 4}")
        .gives(&[
            |case, options, _| cut_if(case, options, |row, most| row.prompt.len() > most),
            |case, options, _| cut_if(case, options, |row, most| row.completion.len() > most),
            |case, options, _| {
                cut_if(case, options, |row, most| {
                    row.prompt.len() > most || row.completion.len() > most
                })
            },
        ]),
        Fault::new(
            "filled-up-and-not-cut",
            "batches are filled up to `max_length`, and what is longer is neither cut nor refused",
        )
        .seen("transformers padding=\"max_length\" without truncation=True")
        .under("{max_length: 4, truncate: refuse}")
        .gives(&[|case, options, _| {
            let mut grid = placed(&rows(case), options);
            filled(&mut grid, options.max_length.unwrap_or(0) as usize, options);
            outputs(&grid, options)
        }]),
        Fault::new(
            "each-side-by-itself",
            "prompts and completions are each cut to `max_length`, not both together",
        )
        .seen("TRL max_prompt_length and max_length taken for one")
        .under("{max_length: 3}")
        .gives(&[|case, options, _| {
            cut_as(case, options, |row, most| {
                let cut = |ids: &[i64]| match options.truncate {
                    Truncate::KeepEnd => ids[ids.len().saturating_sub(most)..].to_vec(),
                    _ => ids[..ids.len().min(most)].to_vec(),
                };
                Row { prompt: cut(&row.prompt), completion: cut(&row.completion) }
            })
        }]),
        Fault::new("only-completions-cut", "a prompt that is too long stays whole")
            .seen("plausible: completion[: max_length - len(prompt)], and nothing for the prompt")
            .under("{max_length: 3}")
            .gives(&[|case, options, _| {
                cut_as(case, options, |row, most| {
                    let room = most.saturating_sub(row.prompt.len());
                    let gone = row.completion.len().saturating_sub(room);
                    let completion = match options.truncate {
                        Truncate::KeepEnd => &row.completion[gone..],
                        _ => &row.completion[..row.completion.len() - gone],
                    };
                    Row { prompt: row.prompt.clone(), completion: completion.to_vec() }
                })
            }]),
        Fault::new(
            "negative-room-from-the-end",
            "completion[: max_length - len(prompt)] counts from the end where that is negative",
        )
        .seen("plausible: a slice with a negative end is none that is empty")
        .under("{max_length: 3}")
        .gives(&[|case, options, _| {
            cut_as(case, options, |row, most| {
                let Row { prompt, completion } = row;
                let over = prompt.len().saturating_sub(most);
                let room = match over {
                    0 => (most - prompt.len()).min(completion.len()),
                    over => completion.len().saturating_sub(over),
                };
                let prompt = prompt[..prompt.len() - over].to_vec();
                Row { prompt, completion: completion[..room].to_vec() }
            })
        }]),
        Fault::new(
            "boundary-stays",
            "the start of a row is cut off, and its completion still begins where it did",
        )
        .seen("plausible: a prompt length that was taken before the cut")
        .under("{max_length: 3, truncate: keep-end}")
        .gives(&[|case, options, _| {
            let lengths: Vec<usize> = rows(case).iter().map(|row| row.prompt.len()).collect();
            boundary(case, options, |row, _, _| lengths[row])
        }]),
    ]
}

/// Rows that are filled up to the longest, then cut by columns.
fn cut_when_filled(
    case: &BatchCollationCase,
    options: &Options,
    last: bool,
) -> BatchCollationOutput {
    let whole = Options { max_length: None, multiple_of: None, ..options.clone() };
    let mut grid: Grid = placed(&rows(case), &whole);
    let most = options.max_length.map_or(usize::MAX, |most| most as usize);
    for cells in &mut grid {
        if last {
            cells.drain(..cells.len().saturating_sub(most));
        } else {
            cells.truncate(most);
        }
        let first = cells.iter().flatten().map(|cell| cell.position).min().unwrap_or(0);
        cells.iter_mut().flatten().for_each(|cell| cell.position -= first);
    }
    let width = grid[0].len().next_multiple_of(options.multiple_of.unwrap_or(1) as usize);
    filled(&mut grid, width, options);
    outputs(&grid, options)
}

/// Which rows are above the limit.
fn too_long(case: &BatchCollationCase, options: &Options) -> Vec<bool> {
    let most = options.max_length.unwrap_or(i64::MAX);
    rows(case).iter().map(|row| row.length() as i64 > most).collect()
}

/// The batch in which only some rows are taken for too long.
fn cut_if(
    case: &BatchCollationCase,
    options: &Options,
    too_long: impl Fn(&Row, usize) -> bool,
) -> BatchCollationOutput {
    let refuse = options.truncate == Truncate::Refuse;
    cut_as(case, options, |row, most| {
        let too_long = too_long(row, most);
        assert!(!(refuse && too_long), "a row is too long");
        if too_long { row.cut(options) } else { row.clone() }
    })
}

/// The batch whose completions begin elsewhere: of a row, its cells and the right number of tokens
/// of its prompt, how many tokens of it are the prompt's.
pub(super) fn boundary(
    case: &BatchCollationCase,
    options: &Options,
    prompt: impl Fn(usize, &[Option<Cell>], usize) -> usize,
) -> BatchCollationOutput {
    let rows = cut(case, options);
    changed(case, options, |row, cells| {
        let before = prompt(row, cells, rows[row].prompt.len());
        for cell in cells.iter_mut().flatten() {
            let all = cell.trained && !cell.of_completion;
            cell.of_completion = cell.position as usize >= before;
            cell.trained = all || cell.of_completion;
        }
    })
}

/// Whether rows have padding before them.
pub(super) fn on_the_left(options: &Options) -> bool {
    options.layout != Layout::Right
}
