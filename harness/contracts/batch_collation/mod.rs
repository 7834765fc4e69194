//! How prompts and completions become the tensors of a batch: ids, masks, labels and positions.
//!
//! Every row is a prompt and its completion; rows are of different length, and what is left over is
//! padding. Whoever takes a pad for a token, a token for a pad or the prompt for the completion
//! trains on the wrong tokens, and no loss curve says so. Cut rows are the worst of it: the
//! boundary between prompt and completion moves with the cut.
//!
//! Outputs are numbers, flags 0 or 1, as floats, integers or booleans. Any of them will do.
//!
//! ### Source
//! TRL `DataCollatorForPreference` and `DataCollatorForLanguageModeling`, torchtune
//! `padded_collate_sft` and NeMo-RL `batched_message_log_to_flat_message` (`right`); torchtune
//! `left_pad_sequence`, OpenRLHF `zero_pad_sequences` (`left`); rollout batches of verl and its
//! `compute_position_id_with_mask` (`split`).

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix1, Ix2};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::one;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `batch-collation`.
    ///
    /// # Shapes
    /// `N` rows, prompts of `P` columns and completions of `C`: `[N, P]`, `[N]`, `[N, C]`, `[N]`.
    /// What lies beyond a length is the pad.
    pub struct BatchCollationCase {
        /// The token ids of each prompt, filled up with the pad.
        pub prompts: A::Int<Ix2>,
        /// How many of them are tokens, 1 at least.
        pub prompt_lengths: A::Int<Ix1>,
        /// The token ids of each completion, filled up with the pad.
        pub completions: A::Int<Ix2>,
        /// How many of them are tokens; 1 at least with `truncate: keep-end`.
        pub completion_lengths: A::Int<Ix1>,
    }
}

record! {
    /// The outputs of `batch-collation`.
    ///
    /// # Shapes
    /// `[N, L]`, all of one width `L`: that of the longest row, or the next multiple.
    pub struct BatchCollationOutput {
        /// The token ids, and the pad beside them.
        pub input_ids: Option<A::Float<Ix2>>,
        /// 1 where a token stands, 0 where a pad.
        pub attention_mask: Option<A::Float<Ix2>>,
        /// 1 where a token of the completion stands, else 0.
        pub completion_mask: Option<A::Float<Ix2>>,
        /// The ids of the tokens that are trained, `ignore` elsewhere.
        pub labels: Option<A::Float<Ix2>>,
        /// The number of each token in its row, from 0 on.
        pub position_ids: Option<A::Float<Ix2>>,
    }
}

impl From<Array2<f64>> for BatchCollationOutput {
    fn from(input_ids: Array2<f64>) -> Self {
        let input_ids = Some(input_ids);
        let (attention_mask, completion_mask, labels, position_ids) = (None, None, None, None);
        Self { input_ids, attention_mask, completion_mask, labels, position_ids }
    }
}

impl From<Array2<i64>> for BatchCollationOutput {
    fn from(input_ids: Array2<i64>) -> Self {
        input_ids.mapv(|id| id as f64).into()
    }
}

choice! {
    /// Where padding stands.
    pub enum Layout {
        /// Behind each row.
        Right = "right",
        /// Before each row.
        Left = "left",
        /// Before each prompt, up to the longest prompt, and behind each completion.
        Split = "split",
    }
}

choice! {
    /// Which tokens have a label.
    pub enum TrainOn {
        /// Those of the completion.
        Completion = "completion",
        /// All.
        All = "all",
    }
}

choice! {
    /// What becomes of a row that is longer than `max_length`.
    pub enum Truncate {
        /// Its first tokens stay.
        KeepStart = "keep-start",
        /// Its last tokens stay.
        KeepEnd = "keep-end",
        /// It is an error.
        Refuse = "refuse",
    }
}

choice! {
    /// In which column the label of a token stands.
    pub enum Shift {
        /// In the token's own.
        None = "none",
        /// In the one before, which predicts it.
        Next = "next",
    }
}

choice! {
    /// What stands in `position_ids` under padding.
    pub enum PadPositions {
        /// Anything.
        Any = "any",
        /// 0.
        Zero = "zero",
    }
}

options! {
    check: fit_together;

    /// The options of `batch-collation`.
    pub struct Options {
        /// `right`, `left` or `split`: padding behind each row, before it, or before each prompt
        /// (up to the longest one) and behind each completion.
        pub layout: Layout = Layout::Right;
        /// The id that fills a row up. A token may have it too.
        pub pad: i64 = 0, in 0..=LARGEST_ID, draw [0, 3, 0, 1, 2, 151_643];
        /// What stands in `labels` where no token is trained.
        pub ignore: i64 = -100, in -LARGEST_ID..=LARGEST_ID, draw [-100, -100, -100, -1];
        /// `completion` or `all`: which tokens have a label.
        pub train_on: TrainOn = TrainOn::Completion;
        /// Null, or an integer ≥ 1: so many tokens of a row stay, of prompt and completion
        /// together. Null with `layout: split`.
        pub max_length: Option<i64> = None, in 1..=LARGEST_ID, by drawn_max_length;
        /// `keep-start`, `keep-end` or `refuse`: which end of a longer row stays, or whether it is
        /// an error.
        pub truncate: Truncate = Truncate::KeepStart;
        /// Null, or an integer ≥ 1: the width is rounded up to a multiple of it. Null with
        /// `layout: split`.
        pub multiple_of: Option<i64> = None, in 1..=4096, by drawn_multiple;
        /// `none` or `next`: whether labels stand in their token's column, or in the one before it;
        /// then the last column is `ignore`.
        pub shift: Shift = Shift::None;
        /// `any` or `zero`: what stands in `position_ids` under padding.
        pub pad_positions: PadPositions = PadPositions::Any;
    }
}

/// The largest id: ids have 32 bits in some frameworks.
const LARGEST_ID: i64 = i32::MAX as i64;

/// Nothing is cut or rounded up where prompts and completions are filled up apart.
fn fit_together(options: &Options) -> Result<(), (&'static str, String)> {
    let split = |set: Option<i64>| match set {
        Some(found) if options.layout == Layout::Split => {
            Err(format!("expected null with `layout: split`, found {found}"))
        }
        _ => Ok(()),
    };
    split(options.max_length).map_err(|why| ("max_length", why))?;
    split(options.multiple_of).map_err(|why| ("multiple_of", why))
}

fn drawn_max_length(u: &mut Unstructured<'_>, drawn: &Options) -> arbitrary::Result<Option<i64>> {
    let split = drawn.layout == Layout::Split;
    let lengths = [None, Some(4), Some(3), Some(2), Some(5), Some(8), Some(1), Some(16)];
    if split { Ok(None) } else { one(u, &lengths) }
}

fn drawn_multiple(u: &mut Unstructured<'_>, drawn: &Options) -> arbitrary::Result<Option<i64>> {
    let split = drawn.layout == Layout::Split;
    if split {
        Ok(None)
    } else {
        one(u, &[None, Some(2), None, Some(4), Some(8), Some(3), Some(1)])
    }
}

/// A prompt and its completion, without padding.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    prompt: Vec<i64>,
    completion: Vec<i64>,
}

impl Row {
    /// How many tokens it has.
    fn length(&self) -> usize {
        self.prompt.len() + self.completion.len()
    }

    /// What `max_length` leaves of it.
    fn cut(&self, options: &Options) -> Row {
        let Row { prompt, completion } = self;
        let most = options.max_length.map_or(usize::MAX, |most| most as usize);
        if options.truncate == Truncate::KeepEnd {
            let gone = self.length().saturating_sub(most);
            let of_prompt = gone.min(prompt.len());
            let (prompt, completion) = (&prompt[of_prompt..], &completion[gone - of_prompt..]);
            return Row { prompt: prompt.to_vec(), completion: completion.to_vec() };
        }
        let of_prompt = most.min(prompt.len());
        let of_completion = (most - of_prompt).min(completion.len());
        let (prompt, completion) = (&prompt[..of_prompt], &completion[..of_completion]);
        Row { prompt: prompt.to_vec(), completion: completion.to_vec() }
    }
}

/// The rows of a case.
fn rows(case: &BatchCollationCase) -> Vec<Row> {
    let tokens = |ids: &Array2<i64>, row: usize, length: i64| -> Vec<i64> {
        ids.row(row).iter().take(length as usize).copied().collect()
    };
    let row = |at: usize| Row {
        prompt: tokens(&case.prompts, at, case.prompt_lengths[at]),
        completion: tokens(&case.completions, at, case.completion_lengths[at]),
    };
    (0..case.prompts.nrows()).map(row).collect()
}

/// The case of some rows, with so many columns of pads more than the longest prompt and the longest
/// completion need.
fn case_of(rows: &[Row], options: &Options, more: [usize; 2]) -> BatchCollationCase {
    type Part = fn(&Row) -> &[i64];
    let filled = |part: Part, more: usize| {
        let longest = rows.iter().map(|row| part(row).len()).max().unwrap_or(0);
        Array2::from_shape_fn((rows.len(), longest.max(1) + more), |(row, column)| {
            part(&rows[row]).get(column).copied().unwrap_or(options.pad)
        })
    };
    let lengths = |part: Part| rows.iter().map(move |row| part(row).len() as i64);
    let [prompt, completion]: [Part; 2] = [|row| &row.prompt, |row| &row.completion];
    BatchCollationCase {
        prompts: filled(prompt, more[0]),
        prompt_lengths: lengths(prompt).collect(),
        completions: filled(completion, more[1]),
        completion_lengths: lengths(completion).collect(),
    }
}

/// The contract: prompts and completions as one batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchCollation;

impl Definition for BatchCollation {
    type Case = BatchCollationCase;
    type Output = BatchCollationOutput;
    type Options = Options;
}

impl Contract for BatchCollation {
    const ID: &'static str = "batch-collation";
    const STAGE: Stage = Stage::Data;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] =
        &["input_ids", "attention_mask", "completion_mask", "labels", "position_ids"];
    const AXES: Axes = Axes::new(&[
        ("prompts", "NP"),
        ("prompt_lengths", "N"),
        ("completions", "NC"),
        ("completion_lengths", "N"),
        ("input_ids", "NL"),
        ("attention_mask", "NL"),
        ("completion_mask", "NL"),
        ("labels", "NL"),
        ("position_ids", "NL"),
    ]);
    const BLIND: &'static [Blind] = &[
        Blind::at("pad", 0.0, &[("pad", "3")]),
        Blind::at("ignore", -100.0, &[("ignore", "-1")]),
        Blind::at("multiple_of", 1.0, &[("multiple_of", "4")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::BATCH_COLLATION;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::collate(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<BatchCollationCase> {
        generate::small(options)
    }

    fn simpler(case: &BatchCollationCase, options: &Options, _: Dtype) -> Vec<BatchCollationCase> {
        generate::simpler(case, options)
    }

    fn refuses(case: &BatchCollationCase, options: &Options) -> bool {
        let most = options.max_length.filter(|_| options.truncate == Truncate::Refuse);
        most.is_some_and(|most| rows(case).iter().any(|row| row.length() as i64 > most))
    }

    fn check_form(
        case: &BatchCollationCase,
        _: &Options,
        output: &BatchCollationOutput,
    ) -> Result<(), String> {
        let rows = case.prompts.nrows();
        let mut width = None;
        for (name, array) in output.given() {
            let (found, columns) = array.dim();
            if found != rows {
                return Err(format!("`{name}` has {found} rows, expected {rows}"));
            }
            match width.replace(columns) {
                Some(other) if other != columns => {
                    return Err(format!(
                        "`{name}` has {columns} columns, an output before it {other}"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn oracle(case: &BatchCollationCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::batch(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }

    fn samples(options: &Options, _: Dtype) -> Vec<BatchCollationCase> {
        generate::samples(options)
    }
}

impl BatchCollationOutput {
    /// The outputs that are there, by name.
    fn given(&self) -> Vec<(&'static str, &Array2<f64>)> {
        let all = [
            ("input_ids", &self.input_ids),
            ("attention_mask", &self.attention_mask),
            ("completion_mask", &self.completion_mask),
            ("labels", &self.labels),
            ("position_ids", &self.position_ids),
        ];
        all.into_iter().filter_map(|(name, array)| Some((name, array.as_ref()?))).collect()
    }
}

impl Rows for BatchCollation {
    /// Rows share a width, so some of them alone give another one: `row-split` here is of its own.
    fn independent(_: &Options) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_core::contract::options::Options as _;

    #[test]
    fn a_limit_or_a_multiple_does_not_go_with_two_sides() {
        let split = Options { layout: Layout::Split, ..Options::default() };
        assert_eq!(split.check(), Ok(()));
        let refused = |options: Options| options.check().unwrap_err().0;
        assert_eq!(refused(Options { max_length: Some(4), ..split.clone() }), "max_length");
        assert_eq!(refused(Options { multiple_of: Some(8), ..split }), "multiple_of");
        assert_eq!(refused(Options { pad: -1, ..Options::default() }), "pad");
    }

    #[test]
    fn a_cut_row_keeps_one_end_and_the_boundary_moves_along() {
        let row = Row { prompt: vec![5, 6, 7], completion: vec![8, 9] };
        let cut = |max_length, truncate| {
            let Row { prompt, completion } =
                row.cut(&Options { max_length, truncate, ..Options::default() });
            [prompt, completion]
        };
        assert_eq!(cut(Some(4), Truncate::KeepStart), [vec![5, 6, 7], vec![8]]);
        assert_eq!(cut(Some(2), Truncate::KeepStart), [vec![5, 6], vec![]]);
        assert_eq!(cut(Some(4), Truncate::KeepEnd), [vec![6, 7], vec![8, 9]]);
        assert_eq!(cut(Some(1), Truncate::KeepEnd), [vec![], vec![9]]);
        assert_eq!(cut(Some(5), Truncate::KeepEnd), [vec![5, 6, 7], vec![8, 9]]);
        assert_eq!(cut(None, Truncate::Refuse), [vec![5, 6, 7], vec![8, 9]]);
    }
}
