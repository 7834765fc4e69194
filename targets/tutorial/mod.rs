//! The three reward functions of the usual GRPO tutorial, as they are passed on from hand to hand:
//! in Rust, with the bugs that they are known for.
//!
//! They stand here to be found, not to be used: what shakedown says of them is in
//! `snapshots/tutorial`.

use regex::Regex;
use shakedown::author::Component;
use shakedown::contracts::reward_function::{
    Judges, Options, RewardFunction, RewardFunctionCase, RewardFunctionOutput,
};
use shakedown::host::function::HostFn;

/// The template that the tutorial's prompt asks for; it ends with a line end.
const TEMPLATE: &str = "<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n{answer}\n</answer>\n";

/// A reward function of the tutorial, as declared.
pub struct Tutorial {
    /// Its name.
    pub name: &'static str,
    /// What is declared about it.
    pub options: Options,
    score: fn(&str, &str) -> f64,
}

impl Tutorial {
    /// The function as a component.
    pub fn component(&self) -> impl Component<RewardFunction> + use<> {
        let score = self.score;
        HostFn::new(move |case: &RewardFunctionCase| {
            let rows = case.completions.iter().zip(&case.answers);
            let rewards: Vec<f64> = rows.map(|(text, gold)| score(text, gold)).collect();
            RewardFunctionOutput::from(rewards)
        })
    }
}

/// All three.
pub fn tutorial() -> Vec<Tutorial> {
    let declared = |judges, range| Options {
        judges,
        range,
        template: TEMPLATE.to_owned(),
        ..Options::default()
    };
    vec![
        Tutorial {
            name: "correctness",
            options: declared(Judges::Correctness, [0.0, 2.0]),
            score: correctness,
        },
        Tutorial {
            name: "strict-format",
            options: declared(Judges::Format, [0.0, 0.5]),
            score: strict_format,
        },
        // What is taken off for trailing characters has no bound.
        Tutorial {
            name: "incremental-format",
            options: declared(Judges::IncrementalFormat, [-100.0, 0.5]),
            score: incremental_format,
        },
    ]
}

/// 2 where what stands after the last opening tag is the gold answer.
fn correctness(text: &str, gold: &str) -> f64 {
    let after = text.rsplit("<answer>").next().unwrap_or(text);
    let answer = after.split("</answer>").next().unwrap_or(after).trim();
    if answer == gold { 2.0 } else { 0.0 }
}

/// 0.5 for the form; the pattern's dot stops at line ends.
fn strict_format(text: &str, _: &str) -> f64 {
    let strict = "^<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n$";
    let strict = Regex::new(strict).expect("the pattern is valid");
    if strict.is_match(text) { 0.5 } else { 0.0 }
}

/// An eighth for each tag in its place, a thousandth off for each character after the last.
fn incremental_format(text: &str, _: &str) -> f64 {
    let once = |tag: &str| text.matches(tag).count() == 1;
    let after = |tag: &str| text.rsplit(tag).next().unwrap_or(text).chars().count() as f64;
    let tags = ["<reasoning>\n", "\n</reasoning>\n", "\n<answer>\n", "\n</answer>"];
    let mut score = 0.125 * tags.iter().filter(|tag| once(tag)).count() as f64;
    if once("\n<answer>\n") {
        score -= 0.001 * after("\n</answer>\n");
    }
    if once("\n</answer>") {
        score -= 0.001 * (after("\n</answer>") - 1.0);
    }
    score
}
