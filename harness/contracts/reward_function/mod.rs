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

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::reading::Reader;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
pub use shakedown_core::generate::completions::AnswerFamily;
use shakedown_core::generate::draw::one;
use shakedown_core::generate::measure::Measure;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;
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
    check: has_form_and_range;

    /// The options of `reward-function`.
    pub struct Options {
        /// `correctness`, `format`, `incremental-format` or `none`: what the score is about, and
        /// so which relations must hold.
        pub judges: Judges = Judges::Correctness;
        /// How a well-formed completion looks: a text in which `{reasoning}` and `{answer}` are
        /// replaced, and nothing else.
        pub template: String = TEMPLATE.to_owned(), by drawn_template;
        /// `integer`, `decimal`, `text` or `latex`: the gold answers.
        pub answer_family: AnswerFamily = AnswerFamily::Integer;
        /// The least and the largest score, `[lo, hi]`.
        pub range: [f64; 2] = [0.0, 1.0],
            draw [[0.0, 1.0], [-1.0, 1.0], [0.0, 2.0], [-1.0, 0.0], [-3.0, 4.0]];
        /// `refuse` or `allow`: whether None or NaN may say that a completion cannot be scored.
        pub unscored: Unscored = Unscored::Refuse;
    }
}

impl Options {
    /// A completion in the declared form.
    #[doc(hidden)]
    pub fn completion(&self, answer: &str) -> String {
        Template::of(self).render("So it is.", answer)
    }

    /// The tags and words that every completion in this form has.
    #[doc(hidden)]
    pub fn marks(&self) -> Vec<String> {
        Template::of(self).marks().into_iter().map(str::to_owned).collect()
    }
}

/// The template has a place for the answer, and a form where that is judged; the range is one.
fn has_form_and_range(options: &Options) -> Result<(), (&'static str, String)> {
    let count = |word: &str| options.template.matches(word).count();
    let (answers, reasonings) = (count("{answer}"), count("{reasoning}"));
    if answers != 1 || reasonings > 1 {
        let expected = "expected `{answer}` once and `{reasoning}` once or not at all";
        let found = format!("{expected}, found {answers} and {reasonings}");
        return Err(("template", found));
    }
    if options.judges_form() && Template::of(options).marks().is_empty() {
        let expected = "expected something besides `{reasoning}` and `{answer}`: \
                        without it every text has the form";
        return Err(("template", expected.to_owned()));
    }
    let [lo, hi] = options.range;
    if !(lo < hi && lo.abs().max(hi.abs()) <= LARGEST) {
        let expected = format!("expected two numbers, -{LARGEST} ≤ lo < hi ≤ {LARGEST}");
        return Err(("range", format!("{expected}, found [{lo}, {hi}]")));
    }
    Ok(())
}

/// The usual templates; the last one has no form.
#[doc(hidden)]
pub const TEMPLATES: [&str; 7] = [
    TEMPLATE,
    "<think>{reasoning}</think><answer>{answer}</answer>",
    "<think>\n{reasoning}\n</think>\n{answer}",
    "<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n{answer}\n</answer>\n",
    "{reasoning}\n#### {answer}",
    "{reasoning} So it is \\boxed{{answer}}",
    "{answer}",
];

/// A template, with a form where that is judged.
fn drawn_template(u: &mut Unstructured<'_>, drawn: &Options) -> arbitrary::Result<String> {
    let formless = usize::from(drawn.judges_form());
    Ok(one(u, &TEMPLATES[..TEMPLATES.len() - formless])?.to_owned())
}

impl Options {
    /// Whether the score is about the form.
    fn judges_form(&self) -> bool {
        matches!(self.judges, Judges::Format | Judges::IncrementalFormat)
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
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes =
        Axes::new(&[("prompts", "N"), ("completions", "N"), ("answers", "N"), ("rewards", "N")]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::REWARD_FUNCTION;
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

    fn telling(case: &RewardFunctionCase, text: &str) -> Option<RewardFunctionCase> {
        let alone = case.completions.len() == 1;
        alone.then(|| RewardFunctionCase {
            completions: Array1::from_elem(1, text.to_owned()),
            ..case.clone()
        })
    }

    fn compared(
        case: &RewardFunctionCase,
        options: &Options,
        same: &dyn Fn(&str, &str) -> bool,
    ) -> Option<RewardFunctionOutput> {
        (options.judges == Judges::Correctness).then(|| reference::judged(case, options, same))
    }

    fn reread(
        case: &RewardFunctionCase,
        options: &Options,
        reader: &Reader<'_>,
    ) -> Option<RewardFunctionOutput> {
        reference::reread(case, options, reader)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for RewardFunction {}
