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

use crate::contract::Contract;
use crate::contract::Parts;
use crate::contract::cuts::Cuts;
use crate::contract::rows::along_axes;
use crate::contract::definition::Definition;
use crate::contract::options::options;
use crate::contract::rows::Rows;
use crate::contract::stage::Stage;
use crate::generate::axes::Axes;
use crate::generate::completions::AnswerFamily;
use crate::generate::draw::one;
use crate::generate::measure::Measure;
use crate::value::choice::choice;
use crate::value::place::Dtype;
use crate::value::record::record;
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

impl crate::contract::options::Options for Options {
    fn docs() -> Vec<crate::contract::options::OptionDoc> {
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

impl Definition for RewardFunction {
    type Case = RewardFunctionCase;
    type Output = RewardFunctionOutput;
    type Options = Options;
}

impl Contract for RewardFunction {
    const ID: &'static str = "reward-function";
    const STAGE: Stage = Stage::Reward;
    const DOC: &'static str = include_str!("mod.rs");
    const AXES: Axes =
        Axes::new(&[("prompts", "N"), ("completions", "N"), ("answers", "N"), ("rewards", "N")]);
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::rewards(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<RewardFunctionCase> {
        generate::small(options)
    }

    fn may_give_nan(options: &Options) -> bool {
        options.unscored == Unscored::Allow
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

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for RewardFunction {}
