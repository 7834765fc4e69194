//! Grids of cells: the steps of collation, to be taken one by one.

use ndarray::Array2;

use super::super::{
    BatchCollationCase, BatchCollationOutput, Layout, Options, Row, Shift, TrainOn, rows,
};

/// A token in a column.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) id: i64,
    /// Its number in its row.
    pub(super) position: i64,
    pub(super) of_completion: bool,
    pub(super) trained: bool,
}

/// Rows of columns, with a token in each or none.
pub(super) type Grid = Vec<Vec<Option<Cell>>>;

/// The tokens of a row, one after the other.
pub(super) fn cells(row: &Row, options: &Options) -> Vec<Option<Cell>> {
    let ids = row.prompt.iter().chain(&row.completion).enumerate();
    let cell = |(at, id): (usize, &i64)| {
        let of_completion = at >= row.prompt.len();
        let trained = of_completion || options.train_on == TrainOn::All;
        Some(Cell { id: *id, position: at as i64, of_completion, trained })
    };
    ids.map(cell).collect()
}

/// The rows of a case, each as far as it is left.
pub(super) fn cut(case: &BatchCollationCase, options: &Options) -> Vec<Row> {
    rows(case).iter().map(|row| row.cut(options)).collect()
}

/// Rows side by side, as wide as they are declared to be.
pub(super) fn placed(rows: &[Row], options: &Options) -> Grid {
    let prompt = rows.iter().map(|row| row.prompt.len()).max().unwrap_or(0);
    let mut grid: Grid = rows.iter().map(|row| cells(row, options)).collect();
    if options.layout == Layout::Split {
        for (row, cells) in rows.iter().zip(&mut grid) {
            cells.splice(0..0, vec![None; prompt - row.prompt.len()]);
        }
    }
    let longest = grid.iter().map(Vec::len).max().unwrap_or(0);
    filled(&mut grid, longest.next_multiple_of(options.multiple_of.unwrap_or(1) as usize), options);
    grid
}

/// Fills rows up to a width.
pub(super) fn filled(grid: &mut Grid, width: usize, options: &Options) {
    for cells in grid {
        let more = width.saturating_sub(cells.len());
        let at = if options.layout == Layout::Left { 0 } else { cells.len() };
        cells.splice(at..at, vec![None; more]);
    }
}

/// The right grid.
pub(super) fn right(case: &BatchCollationCase, options: &Options) -> Grid {
    placed(&cut(case, options), options)
}

/// What is read off a grid.
pub(super) fn outputs(grid: &Grid, options: &Options) -> BatchCollationOutput {
    let width = grid.iter().map(Vec::len).max().unwrap_or(0);
    let read = |number: &dyn Fn(Option<&Cell>) -> i64| {
        Some(Array2::from_shape_fn((grid.len(), width), |(row, column)| {
            number(grid[row].get(column).and_then(Option::as_ref)) as f64
        }))
    };
    let ignore = options.ignore;
    let labels = read(&|cell| cell.filter(|cell| cell.trained).map_or(ignore, |cell| cell.id));
    BatchCollationOutput {
        input_ids: read(&|cell| cell.map_or(options.pad, |cell| cell.id)),
        attention_mask: read(&|cell| i64::from(cell.is_some())),
        completion_mask: read(&|cell| i64::from(cell.is_some_and(|cell| cell.of_completion))),
        labels: labels.map(|labels| match options.shift {
            Shift::Next => shifted(&labels, 1, options),
            Shift::None => labels,
        }),
        position_ids: read(&|cell| cell.map_or(0, |cell| cell.position)),
    }
}

/// Labels so many columns earlier.
pub(super) fn shifted(labels: &Array2<f64>, by: isize, options: &Options) -> Array2<f64> {
    Array2::from_shape_fn(labels.dim(), |(row, column)| {
        let from = column.checked_add_signed(by);
        let label = from.and_then(|from| labels.get((row, from)));
        label.copied().unwrap_or(options.ignore as f64)
    })
}

/// The outputs of the right grid after a change of its cells.
pub(super) fn changed(
    case: &BatchCollationCase,
    options: &Options,
    change: impl Fn(usize, &mut [Option<Cell>]),
) -> BatchCollationOutput {
    let mut grid = right(case, options);
    grid.iter_mut().enumerate().for_each(|(row, cells)| change(row, cells));
    outputs(&grid, options)
}

/// The outputs of rows that were cut otherwise.
pub(super) fn cut_as(
    case: &BatchCollationCase,
    options: &Options,
    cut: impl Fn(&Row, usize) -> Row,
) -> BatchCollationOutput {
    let most = options.max_length.map_or(usize::MAX, |most| most as usize);
    let cut: Vec<Row> = rows(case).iter().map(|row| cut(row, most)).collect();
    outputs(&placed(&cut, options), options)
}
