//! A score for each completion: right or wrong, well-formed or not.
//!
//! Nobody can say what a reward function must give, but how its scores must compare: the right
//! answer in the declared form gets the most there is, a wrong one gets less, and what has nothing
//! to do with the answer changes nothing. A policy finds every gap in this within a few hundred
//! steps, and learns the gap.
//!
//! ### Source
//! TRL `reward_funcs`, verl `compute_score`, the functions of the usual GRPO tutorial, and the bug
//! reports about them. The scores are relations between calls, so there is no oracle.

mod faults;
mod generate;
mod invariants;
mod probes;
mod reference;
mod template;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix1};

use crate::contract::{Class, Contract, Stage};
use crate::cuts::Cuts;
use crate::draw::one;
use crate::fault::Fault;
use crate::grid::Grid;
use crate::invariant::Invariant;
use crate::laws::Rows;
use crate::place::Dtype;
use crate::shapes::AnswerFamily;
use crate::shrink::Measure;
use crate::{choice, options, record};
use template::Template;

record! {
    /// The inputs of `reward-function`.
    ///
    /// # Shapes
    /// `N` completions: all `[N]`.
    pub struct RewardFunctionCase {
        /// What the policy was asked.
        pub prompts: A::Text<Ix1>,
        /// What it said.
        pub completions: A::Text<Ix1>,
        /// The gold answers.
        pub answers: A::Text<Ix1>,
    }
}

record! {
    /// The output of `reward-function`.
    ///
    /// # Shapes
    /// `[N]`.
    pub struct RewardFunctionOutput {
        /// The score of each completion.
        pub rewards: A::Float<Ix1>,
    }
}

impl From<Array1<f64>> for RewardFunctionOutput {
    fn from(rewards: Array1<f64>) -> Self {
        Self { rewards }
    }
}

impl From<Vec<f64>> for RewardFunctionOutput {
    fn from(rewards: Vec<f64>) -> Self {
        Array1::from(rewards).into()
    }
}

choice! {
    /// What a score is about.
    pub enum Judges {
        /// The answer.
        Correctness = "correctness",
        /// The form, as a whole.
        Format = "format",
        /// The form, tag by tag.
        IncrementalFormat = "incremental-format",
        /// Something else.
        None = "none",
    }
}

choice! {
    /// What becomes of completions that cannot be scored.
    pub enum Unscored {
        /// There are none.
        Refuse = "refuse",
        /// NaN.
        Allow = "allow",
    }
}

/// The default template: both parts between tags, one to a line.
const TEMPLATE: &str = "<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n{answer}\n</answer>";

options! {
    /// The options of `reward-function`.
    pub struct Options {
        /// `correctness`, `format`, `incremental-format` or `none`: what the score is about, and
        /// so which relations must hold.
        pub judges: Judges = Judges::Correctness,
        /// How a well-formed completion looks: a text in which `{reasoning}` and `{answer}` are
        /// replaced, and nothing else.
        pub template: String = TEMPLATE.to_owned(),
        /// `integer`, `decimal`, `text` or `latex`: the gold answers.
        pub answer_family: AnswerFamily = AnswerFamily::Integer,
        /// The least and the largest score, `[lo, hi]`.
        pub range: [f64; 2] = [0.0, 1.0],
        /// `refuse` or `allow`: whether None or NaN may say that a completion cannot be scored.
        pub unscored: Unscored = Unscored::Refuse,
    }
}

impl crate::contract::Options for Options {
    fn docs() -> Vec<crate::contract::OptionDoc> {
        Self::option_docs()
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let count = |word: &str| self.template.matches(word).count();
        let (answers, reasonings) = (count("{answer}"), count("{reasoning}"));
        if answers != 1 || reasonings > 1 {
            let expected = "expected `{answer}` once and `{reasoning}` once or not at all";
            let found = format!("{expected}, found {answers} and {reasonings}");
            return Err(("template", found));
        }
        let form = matches!(self.judges, Judges::Format | Judges::IncrementalFormat);
        if form && Template::of(self).marks().is_empty() {
            let expected = "expected something besides `{reasoning}` and `{answer}`: \
                            without it every text has the form";
            return Err(("template", expected.to_owned()));
        }
        let [lo, hi] = self.range;
        if !(lo < hi && lo.abs().max(hi.abs()) <= LARGEST) {
            let expected = format!("expected two numbers, -{LARGEST} ≤ lo < hi ≤ {LARGEST}");
            return Err(("range", format!("{expected}, found [{lo}, {hi}]")));
        }
        Ok(())
    }

    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let judges = one(u, Judges::ALL)?;
        let form = matches!(judges, Judges::Format | Judges::IncrementalFormat);
        let mut templates = vec![
            TEMPLATE,
            "<think>{reasoning}</think><answer>{answer}</answer>",
            "<think>\n{reasoning}\n</think>\n{answer}",
            "<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n{answer}\n</answer>\n",
            "{reasoning}\n#### {answer}",
            "{reasoning} So it is \\boxed{{answer}}",
        ];
        if !form {
            templates.push("{answer}");
        }
        Ok(Options {
            judges,
            template: one(u, &templates)?.to_owned(),
            answer_family: one(u, AnswerFamily::ALL)?,
            range: one(u, &[[0.0, 1.0], [-1.0, 1.0], [0.0, 2.0], [-1.0, 0.0], [-3.0, 4.0]])?,
            unscored: one(u, Unscored::ALL)?,
            ..Options::default()
        })
    }
}

/// The largest score: every dtype holds it.
const LARGEST: f64 = 1e4;

/// The contract: a score for each completion.
#[derive(Clone, Copy, Debug)]
pub struct RewardFunction;

impl Contract for RewardFunction {
    type Case = RewardFunctionCase;
    type Output = RewardFunctionOutput;
    type Options = Options;

    const ID: &'static str = "reward-function";
    const STAGE: Stage = Stage::Reward;
    const DOC: &'static str = include_str!("mod.rs");

    fn draw(
        u: &mut Unstructured<'_>,
        options: &Options,
        _: Dtype,
    ) -> arbitrary::Result<RewardFunctionCase> {
        generate::draw(u, options)
    }

    fn corners(options: &Options, _: Dtype) -> Vec<RewardFunctionCase> {
        generate::corners(options)
    }

    fn small(options: &Options, _: Dtype) -> Vec<RewardFunctionCase> {
        generate::small(options)
    }

    fn may_give_nan(options: &Options) -> bool {
        options.unscored == Unscored::Allow
    }

    fn valid(case: &RewardFunctionCase, options: &Options, _: Dtype) -> Result<(), String> {
        generate::valid(case, options)
    }

    fn simpler(case: &RewardFunctionCase, _: &Options, _: Dtype) -> Vec<RewardFunctionCase> {
        generate::simpler(case)
    }

    fn measure(case: &RewardFunctionCase) -> Measure {
        generate::measure(case)
    }

    fn shapes(case: &RewardFunctionCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        vec![("rewards", vec![case.completions.len()])]
    }

    fn reference(case: &RewardFunctionCase, options: &Options, _: Dtype) -> RewardFunctionOutput {
        reference::rewards(case, options)
    }

    fn cuts() -> Option<Cuts<Self>> {
        Some(Cuts::along_axes())
    }

    fn invariants() -> Vec<Invariant<Self>> {
        invariants::all()
    }

    fn faults() -> Vec<Fault<Self>> {
        faults::all()
    }

    fn classes() -> Vec<Class<Self>> {
        generate::classes()
    }
}

impl Grid for RewardFunction {
    const AXES: &'static [(&'static str, &'static str)] =
        &[("prompts", "N"), ("completions", "N"), ("answers", "N"), ("rewards", "N")];
}

impl Rows for RewardFunction {}
