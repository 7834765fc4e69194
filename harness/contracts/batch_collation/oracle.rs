//! The definition of `batch-collation`: which token stands in which column.

use ndarray::{Array2, ArrayD};

use super::{BatchCollationCase, Layout, Options, PadPositions, Row, Shift, TrainOn, rows};
use shakedown_core::numeric::tolerance::{Expected, Number};

/// Where the tokens of each row stand.
pub(super) struct Places {
    /// The rows as far as they are left.
    pub(super) rows: Vec<Row>,
    /// The column of each row's first token.
    pub(super) starts: Vec<usize>,
    /// How many columns there are.
    pub(super) width: usize,
}

impl Places {
    /// Of a case under these options.
    pub(super) fn of(case: &BatchCollationCase, options: &Options) -> Places {
        let rows: Vec<Row> = rows(case).iter().map(|row| row.cut(options)).collect();
        let longest = |length: &dyn Fn(&Row) -> usize| rows.iter().map(length).max().unwrap_or(0);
        let prompt = longest(&|row| row.prompt.len());
        let (start, width): (&dyn Fn(&Row) -> usize, usize) = match options.layout {
            Layout::Split => {
                (&|row| prompt - row.prompt.len(), prompt + longest(&|row| row.completion.len()))
            }
            layout => {
                let multiple = options.multiple_of.unwrap_or(1) as usize;
                let width = longest(&Row::length).div_ceil(multiple) * multiple;
                let left = layout == Layout::Left;
                (&move |row| if left { width - row.length() } else { 0 }, width)
            }
        };
        let starts = rows.iter().map(start).collect();
        Places { rows, starts, width }
    }

    /// The number of a column's token in its row, and whether it is of the completion; `None` where
    /// it is padding.
    pub(super) fn token(&self, row: usize, column: usize) -> Option<(usize, bool)> {
        let at = column.checked_sub(self.starts[row])?;
        let of = &self.rows[row];
        (at < of.length()).then_some((at, at >= of.prompt.len()))
    }

    /// The id of a row's token.
    pub(super) fn id(&self, row: usize, at: usize) -> i64 {
        let Row { prompt, completion } = &self.rows[row];
        if at < prompt.len() { prompt[at] } else { completion[at - prompt.len()] }
    }

    /// The id in a column where its token is trained.
    pub(super) fn trained(&self, row: usize, column: usize, options: &Options) -> Option<i64> {
        let (at, of_completion) = self.token(row, column)?;
        let trained = of_completion || options.train_on == TrainOn::All;
        trained.then(|| self.id(row, at))
    }

    /// Whether the contract leaves a label open: that of a row's first token, in the padding before
    /// it. Who shifts a row and then fills it up has none there.
    pub(super) fn label_is_open(&self, row: usize, column: usize, options: &Options) -> bool {
        options.shift == Shift::Next && column + 1 == self.starts[row]
    }
}

/// What the definition gives: nothing is computed, so nothing is rounded.
pub(super) fn batch(case: &BatchCollationCase, options: &Options) -> Vec<Expected> {
    let places = Places::of(case, options);
    let whole = |number: i64| Number::new(number as f64, 0.0);
    let label = |row: usize, column: usize| {
        let of = if options.shift == Shift::Next { column + 1 } else { column };
        if places.label_is_open(row, column, options) {
            return Number::OPEN;
        }
        whole(places.trained(row, of, options).unwrap_or(options.ignore))
    };
    let shape = (places.rows.len(), places.width);
    let made = |number: &dyn Fn(usize, usize) -> Number| -> ArrayD<Number> {
        Array2::from_shape_fn(shape, |(row, column)| number(row, column)).into_dyn()
    };
    let token = |row, column| places.token(row, column);
    let fields = [
        (
            "input_ids",
            made(&|row, column| {
                whole(token(row, column).map_or(options.pad, |(at, _)| places.id(row, at)))
            }),
        ),
        ("attention_mask", made(&|row, column| whole(i64::from(token(row, column).is_some())))),
        (
            "completion_mask",
            made(&|row, column| whole(i64::from(token(row, column).is_some_and(|(_, of)| of)))),
        ),
        ("labels", made(&label)),
        (
            "position_ids",
            made(&|row, column| match (token(row, column), options.pad_positions) {
                (Some((at, _)), _) => whole(at as i64),
                (None, PadPositions::Zero) => whole(0),
                (None, PadPositions::Any) => Number::OPEN,
            }),
        ),
    ];
    fields.into_iter().map(|(field, numbers)| Expected { field, numbers, terms: 1 }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::case_of;
    use super::*;

    /// Two rows: 5 6 7 | 9 0 and 8 | 11 12.
    fn numbers(options: &Options, field: &str) -> Vec<Vec<f64>> {
        let rows = [
            Row { prompt: vec![5, 6, 7], completion: vec![9, 0] },
            Row { prompt: vec![8], completion: vec![11, 12] },
        ];
        let batch = batch(&case_of(&rows, options, [0, 0]), options);
        let expected = batch.into_iter().find(|expected| expected.field == field).unwrap();
        let value = |number: &Number| if number.scale == 0.0 { number.value } else { -7.0 };
        expected.numbers.outer_iter().map(|row| row.iter().map(value).collect()).collect()
    }

    #[test]
    fn rows_stand_where_the_layout_says() {
        let ids = |layout| numbers(&Options { layout, ..Options::default() }, "input_ids");
        let first = [5.0, 6.0, 7.0, 9.0, 0.0];
        assert_eq!(ids(Layout::Right), [first, [8.0, 11.0, 12.0, 0.0, 0.0]]);
        assert_eq!(ids(Layout::Left), [first, [0.0, 0.0, 8.0, 11.0, 12.0]]);
        assert_eq!(ids(Layout::Split), [first, [0.0, 0.0, 8.0, 11.0, 12.0]]);
    }

    #[test]
    fn labels_are_ids_of_trained_tokens_in_their_column_or_the_one_before() {
        let ignore = -100.0;
        let labels = |options: Options| numbers(&options, "labels");
        let own = [[ignore, ignore, ignore, 9.0, 0.0], [ignore, 11.0, 12.0, ignore, ignore]];
        assert_eq!(labels(Options::default()), own);
        let next = [[ignore, ignore, 9.0, 0.0, ignore], [11.0, 12.0, ignore, ignore, ignore]];
        let shift = Shift::Next;
        assert_eq!(labels(Options { shift, ..Options::default() }), next);
        let (layout, train_on) = (Layout::Left, TrainOn::All);
        let open = [[6.0, 7.0, 9.0, 0.0, ignore], [ignore, -7.0, 11.0, 12.0, ignore]];
        assert_eq!(labels(Options { layout, train_on, shift, ..Options::default() }), open);
    }

    #[test]
    fn positions_count_from_the_first_token() {
        let positions = |pad_positions| {
            let options = Options { layout: Layout::Left, pad_positions, ..Options::default() };
            numbers(&options, "position_ids")[1].clone()
        };
        assert_eq!(positions(PadPositions::Zero), [0.0, 0.0, 0.0, 1.0, 2.0]);
        assert_eq!(positions(PadPositions::Any), [-7.0, -7.0, 0.0, 1.0, 2.0]);
    }

    #[test]
    fn the_width_is_rounded_up_and_no_further() {
        let width = |multiple| {
            let multiple_of = Some(multiple);
            numbers(&Options { multiple_of, ..Options::default() }, "input_ids")[0].len()
        };
        assert_eq!([1, 2, 4, 5, 8].map(width), [5, 6, 8, 5, 8]);
    }
}
