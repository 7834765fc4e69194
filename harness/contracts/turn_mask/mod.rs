//! Which tokens of a conversation are trained.
//!
//! A conversation is rendered turn by turn, with marks around each, and the tokens of some turns
//! are trained: those of the assistant, or of the last answer. Masks that are found by searching
//! the rendered text for marks go wrong where a turn is missing, where two follow each other, where
//! an answer is cut off, and where somebody writes a mark into a message.
//!
//! The outputs are lists of ids and flags, 0 or 1, as floats, integers or booleans. Any of them
//! will do.
//!
//! ### Source
//! NeMo-RL `add_loss_mask_to_message_log` and torchtune `mask_messages` (without marks), slime
//! `MultiTurnLossMaskGenerator` (`bos: []`), the assistant mask of chat templates with generation
//! marks in transformers and TRL.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix0, Ix1, arr0};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// One turn of a conversation.
    ///
    /// # Shapes
    /// A single number; `[n]`, where there may be no token.
    pub struct Turn {
        /// Whose turn it is: 0 system, 1 user, 2 assistant, 3 tool.
        pub role: A::Int<Ix0>,
        /// The ids of its content.
        pub tokens: A::Int<Ix1>,
    }
}

record! {
    /// The input of `turn-mask`.
    ///
    /// # Shapes
    /// `[n]` tokens in a turn, a number of its own.
    pub struct TurnMaskCase {
        /// The turns of the conversation, in order; one at least.
        pub turns: Vec<Turn<A>>,
    }
}

record! {
    /// The outputs of `turn-mask`.
    ///
    /// # Shapes
    /// `[T]` tokens of the rendered conversation; with `shift: next` the mask and the labels have
    /// one less.
    pub struct TurnMaskOutput {
        /// The ids of the rendered conversation.
        pub tokens: Option<A::Float<Ix1>>,
        /// 1 where the token is trained, else 0.
        pub mask: Option<A::Float<Ix1>>,
        /// The ids of the trained tokens, `ignore` elsewhere.
        pub labels: Option<A::Float<Ix1>>,
    }
}

impl From<Array1<f64>> for TurnMaskOutput {
    fn from(tokens: Array1<f64>) -> Self {
        Self { tokens: Some(tokens), mask: None, labels: None }
    }
}

impl From<Array1<i64>> for TurnMaskOutput {
    fn from(tokens: Array1<i64>) -> Self {
        tokens.mapv(|id| id as f64).into()
    }
}

choice! {
    /// Which turns are trained.
    pub enum Train {
        /// Those of the assistant.
        Assistant = "assistant",
        /// The last one of the assistant.
        LastAssistant = "last-assistant",
        /// The last one, whosever it is.
        Last = "last",
        /// All but the system's.
        All = "all",
    }
}

choice! {
    /// Whether mask and labels speak of a token or of the next one.
    pub enum Shift {
        /// Of the token in their place.
        None = "none",
        /// Of the next one: their first entry is gone.
        Next = "next",
    }
}

options! {
    check: are_ids;
    draw: drawn;

    /// The options of `turn-mask`.
    pub struct Options {
        /// The ids before the first turn, if any.
        pub bos: Vec<i64> = vec![1];
        /// The ids before each turn's role, if any.
        pub start: Vec<i64> = vec![10];
        /// The ids behind each turn's content, if any.
        pub end: Vec<i64> = vec![11];
        /// The id of each role: system, user, assistant, tool; or none, where the text does not
        /// name the role.
        pub role_ids: Vec<i64> = vec![20, 21, 22, 23];
        /// `assistant`, `last-assistant`, `last` or `all`: the turns of the assistant, the last one
        /// of them, the last turn whosever it is, or every turn but the system's.
        pub train: Train = Train::Assistant;
        /// `true` or `false`: whether the ids before the content of a trained turn are trained,
        /// `start` and the role's.
        pub train_header: bool = false;
        /// `true` or `false`: whether the `end` of a trained turn is trained.
        pub train_end: bool = true;
        /// Null, or an integer ≥ 1: so many tokens of the text stay, its first ones.
        pub max_length: Option<i64> = None, in 1..=LARGEST_ID;
        /// What stands in `labels` where the token is not trained.
        pub ignore: i64 = -100, in -LARGEST_ID..=LARGEST_ID;
        /// `none` or `next`: whether mask and labels speak of the token in their place, or of the
        /// next one; then they lack their first entry.
        pub shift: Shift = Shift::None;
    }
}

/// The largest id: ids have 32 bits in some frameworks.
const LARGEST_ID: i64 = i32::MAX as i64;

/// The number of roles.
const ROLES: usize = 4;

/// The role of the system, the assistant and tools.
const SYSTEM: i64 = 0;
const USER: i64 = 1;
const ASSISTANT: i64 = 2;
const TOOL: i64 = 3;

/// The marks are ids, and every role has one or none has.
fn are_ids(options: &Options) -> Result<(), (&'static str, String)> {
    let lists = [
        ("bos", &options.bos),
        ("start", &options.start),
        ("end", &options.end),
        ("role_ids", &options.role_ids),
    ];
    for (name, list) in lists {
        if let Some(id) = list.iter().find(|id| !(0..=LARGEST_ID).contains(*id)) {
            return Err((name, format!("expected ids from 0 to {LARGEST_ID}, found {id}")));
        }
    }
    match options.role_ids.len() {
        0 | ROLES => Ok(()),
        found => Err(("role_ids", format!("expected {ROLES} ids or none, found {found}"))),
    }
}

/// Marks are drawn together, as templates have them.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    type Marks = (&'static [i64], &'static [i64], &'static [i64], &'static [i64]);
    let roles: &[i64] = &[20, 21, 22, 23];
    let marks: [Marks; 10] = [
        (&[1], &[10], &[11], roles),
        (&[], &[], &[], &[]),
        (&[], &[10], &[11], roles),
        (&[1], &[], &[2], &[]),
        (&[1], &[10, 12], &[11, 13], roles),
        (&[], &[], &[], roles),
        (&[1, 1], &[10], &[10], &[20, 21, 22, 22]),
        (&[], &[3], &[], &[4, 5, 6, 7]),
        (&[], &[151_644], &[151_645, 198], &[8948, 872, 77_091, 14_172]),
        (&[128_000], &[128_006], &[128_009], &[9125, 882, 78_191, 23_799]),
    ];
    let (bos, start, end, role_ids) = one(u, &marks)?;
    let lengths = [None, None, Some(9), Some(6), Some(4), Some(12), Some(2), Some(1), Some(16)];
    Ok(Options {
        bos: bos.to_vec(),
        start: start.to_vec(),
        end: end.to_vec(),
        role_ids: role_ids.to_vec(),
        train: one(u, Train::ALL)?,
        train_header: chance(u, 64)?,
        train_end: !chance(u, 64)?,
        max_length: one(u, &lengths)?,
        ignore: one(u, &[-100, -100, -1])?,
        shift: one(u, Shift::ALL)?,
        ..Options::default()
    })
}

impl Turn {
    /// A turn of a role.
    fn of(role: i64, tokens: &[i64]) -> Turn {
        Turn { role: arr0(role), tokens: Array1::from(tokens.to_vec()) }
    }

    /// Whose turn it is.
    fn who(&self) -> i64 {
        self.role[()]
    }
}

impl Options {
    /// Which turns are trained.
    fn trained(&self, turns: &[Turn]) -> Vec<bool> {
        let last = match self.train {
            Train::Last => turns.len().checked_sub(1),
            _ => turns.iter().rposition(|turn| turn.who() == ASSISTANT),
        };
        let trained = turns.iter().enumerate().map(|(at, turn)| match self.train {
            Train::Assistant => turn.who() == ASSISTANT,
            Train::LastAssistant | Train::Last => last == Some(at),
            Train::All => turn.who() != SYSTEM,
        });
        trained.collect()
    }

    /// What stands before the content of a turn of a role.
    fn header(&self, role: i64) -> Vec<i64> {
        let mut header = self.start.clone();
        header.extend(self.role_ids.get(role as usize));
        header
    }

    /// How many of so many tokens are left.
    fn left(&self, tokens: usize) -> usize {
        self.max_length.map_or(tokens, |most| tokens.min(most as usize))
    }

    /// Whether an id is part of a mark.
    fn is_mark(&self, id: i64) -> bool {
        [&self.bos, &self.start, &self.end, &self.role_ids].into_iter().any(|of| of.contains(&id))
    }

    /// How many entries of mask and labels there are fewer than tokens.
    fn shifted(&self) -> usize {
        usize::from(self.shift == Shift::Next)
    }
}

/// The contract: which tokens of a conversation are trained.
#[derive(Clone, Copy, Debug)]
pub struct TurnMask;

impl Definition for TurnMask {
    type Case = TurnMaskCase;
    type Output = TurnMaskOutput;
    type Options = Options;
}

impl Contract for TurnMask {
    const ID: &'static str = "turn-mask";
    const STAGE: Stage = Stage::Data;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["tokens", "mask", "labels"];
    const BLIND: &'static [Blind] = &[Blind::at("ignore", -100.0, &[("ignore", "-1")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::TURN_MASK;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::render(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<TurnMaskCase> {
        generate::small(options)
    }

    fn simpler(case: &TurnMaskCase, options: &Options, _: Dtype) -> Vec<TurnMaskCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &TurnMaskCase) -> Measure {
        generate::measure(case)
    }

    fn shapes(_: &TurnMaskCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        Vec::new()
    }

    fn check_form(
        _: &TurnMaskCase,
        options: &Options,
        output: &TurnMaskOutput,
    ) -> Result<(), String> {
        let Some(tokens) = &output.tokens else { return Ok(()) };
        let expected = tokens.len().saturating_sub(options.shifted());
        for (name, list) in [("mask", &output.mask), ("labels", &output.labels)] {
            if let Some(list) = list
                && list.len() != expected
            {
                let (found, tokens) = (list.len(), tokens.len());
                return Err(format!(
                    "`{name}` has {found} entries for {tokens} tokens, expected {expected}"
                ));
            }
        }
        Ok(())
    }

    fn oracle(case: &TurnMaskCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::expected(case, options)
    }

    fn samples(options: &Options, _: Dtype) -> Vec<TurnMaskCase> {
        generate::samples(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_core::contract::options::Options as _;

    #[test]
    fn every_role_has_an_id_or_none_has() {
        let with = |role_ids| Options { role_ids, ..Options::default() };
        assert_eq!(with(vec![]).check(), Ok(()));
        assert_eq!(with(vec![1, 2, 3]).check().unwrap_err().0, "role_ids");
        assert_eq!(with(vec![1, 2, 3, -4]).check().unwrap_err().0, "role_ids");
        let (option, why) = Options { end: vec![-100], ..with(vec![]) }.check().unwrap_err();
        assert_eq!((option, why.contains("found -100")), ("end", true));
    }
}
