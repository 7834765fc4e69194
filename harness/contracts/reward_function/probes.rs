//! The completions that the invariants make themselves, and how their scores are asked for.

use ndarray::Array1;

use super::template::{Template, is_tag};
use super::{Options, RewardFunction, RewardFunctionCase};
use shakedown_core::contract::outcome::broken;
use shakedown_core::contract::outcome::{Outcome, Stop};
use shakedown_core::contract::probe::Probe;
use shakedown_core::generate::completions::{AnswerFamily, Shape};
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::tolerance::{Number, apart};
use shakedown_core::value::text::{quoted, rounded};

/// Reasoning that nothing could be said against.
pub(super) const PLAIN: &str = "We add them up.";

/// The first row's prompt and gold answer, with the form of the completions.
pub(super) struct Question {
    pub(super) prompt: String,
    pub(super) gold: String,
    pub(super) template: Template,
    wrong: Vec<String>,
}

impl Question {
    /// The question of a case; a gold answer that is blank is none.
    pub(super) fn of(probe: &Probe<'_, RewardFunction>) -> Result<Question, Stop> {
        let gold = probe.case.answers[0].clone();
        if gold.trim().is_empty() {
            return Err(Stop::Vacuous);
        }
        Ok(Question {
            prompt: probe.case.prompts[0].clone(),
            wrong: wrong_answers(probe.options, &gold),
            gold,
            template: Template::of(probe.options),
        })
    }

    /// The well-formed completion with the gold answer.
    pub(super) fn right(&self) -> String {
        self.answered(&self.gold)
    }

    /// A well-formed completion with an answer.
    pub(super) fn answered(&self, answer: &str) -> String {
        self.template.render(PLAIN, answer)
    }

    /// Wrong answers, none of which any reader could take for the gold answer.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.wrong.clone()
    }

    /// Reasonings without a marker or the answer in them.
    pub(super) fn reasonings(&self) -> Vec<String> {
        let wrong = self.wrong();
        let mut reasonings = vec![
            PLAIN.to_owned(),
            "We add.\nThen we check.\n\nDone.".to_owned(),
            format!("I thought of {} first.", wrong[0]),
            "We see a < b && c > d here.".to_owned(),
            "\u{7b54}\u{6848}\u{662f} caf\u{e9} \u{1f469}\u{200d}\u{1f467}".to_owned(),
            "We add.\r\nThen we check.".to_owned(),
            "All of {x} and %s and \\d, all".to_owned(),
            "We think about it. ".repeat(12),
        ];
        reasonings.retain(|reasoning| !mentions(reasoning, &self.gold));
        reasonings
    }

    /// What the component gives for some completions of this question, in one batch.
    pub(super) fn scores(
        &self,
        probe: &mut Probe<'_, RewardFunction>,
        completions: &[String],
    ) -> Result<Vec<f64>, Stop> {
        let case = self.case(completions);
        Ok(probe.call(&case)?.rewards.to_vec())
    }

    /// The same with the gold's score, and that of the well-formed completion first. Where that is
    /// no number, there is nothing to compare with.
    pub(super) fn scores_beside_the_right_one(
        &self,
        probe: &mut Probe<'_, RewardFunction>,
        completions: &[String],
    ) -> Result<(f64, Vec<f64>), Stop> {
        let mut all = vec![self.right()];
        all.extend_from_slice(completions);
        let mut scores = self.scores(probe, &all)?;
        let right = scores.remove(0);
        if right.is_nan() { Err(Stop::Vacuous) } else { Ok((right, scores)) }
    }

    /// Breaks the invariant where one of some completions scores as much as the right one.
    pub(super) fn below_the_right_one(
        &self,
        probe: &mut Probe<'_, RewardFunction>,
        hacks: &[String],
    ) -> Outcome {
        let (right, scores) = self.scores_beside_the_right_one(probe, hacks)?;
        if let Some(hack) = scores.iter().position(|score| *score >= right) {
            broken!(
                "{} scores {}, {} scores {}; the gold answer is {}",
                quoted(&hacks[hack]),
                rounded(scores[hack]),
                quoted(&self.right()),
                rounded(right),
                quoted(&self.gold)
            );
        }
        Ok(())
    }

    /// The gold answer in every shape of completion.
    pub(super) fn shapes(&self, reasoning: &str) -> Vec<String> {
        let markers = self.template.markers();
        Shape::ALL.iter().map(|shape| shape.render(&markers, reasoning, &self.gold)).collect()
    }

    /// The well-formed completion without one of its tags or words; with another one's name, too.
    pub(super) fn without_a_tag(&self, renamed: bool) -> Vec<String> {
        let count = self.template.marks().len();
        let instead = |at: usize, other: &str| {
            self.template.render_marks(PLAIN, &self.gold, |number, mark| {
                if number == at { other.to_owned() } else { mark.to_owned() }
            })
        };
        let marks = self.template.marks();
        // A word that stands elsewhere too is not missed.
        let without = (0..count).map(|at| (marks[at], instead(at, "")));
        let missing = without.filter(|(mark, text)| !text.contains(mark));
        let mut texts: Vec<String> = missing.map(|(_, text)| text).collect();
        let tags = marks.iter().enumerate().filter(|(_, mark)| renamed && is_tag(mark));
        texts.extend(tags.map(|(at, mark)| instead(at, &mark.replace('>', "s>"))));
        texts
    }

    /// A well-formed completion without some of its tags, or with more of them.
    pub(super) fn degraded(&self, reasoning: &str) -> Vec<String> {
        let count = self.template.marks().len();
        let with = |times: usize, at: usize| {
            self.template.render_marks(reasoning, &self.gold, |number, mark| {
                if number == at { mark.repeat(times) } else { mark.to_owned() }
            })
        };
        let mut texts = vec![String::new(), reasoning.to_owned(), self.gold.clone()];
        texts.extend((0..count).flat_map(|at| [with(0, at), with(2, at)]));
        texts
    }

    /// The plain completion with those of its first `count` marks whose bit is set.
    pub(super) fn with(&self, kept: usize, count: usize) -> String {
        self.template.render_marks(PLAIN, &self.gold, |number, mark| {
            if number >= count || kept >> number & 1 == 1 { mark.to_owned() } else { String::new() }
        })
    }

    /// The batch of some completions of this question.
    pub(super) fn case(&self, completions: &[String]) -> RewardFunctionCase {
        let count = completions.len();
        RewardFunctionCase {
            prompts: Array1::from_elem(count, self.prompt.clone()),
            completions: Array1::from(completions.to_vec()),
            answers: Array1::from_elem(count, self.gold.clone()),
        }
    }
}

/// Wrong answers of a family that are wrong for readers of numbers and of patterns too.
pub(super) fn wrong_answers(options: &Options, gold: &str) -> Vec<String> {
    let family = options.answer_family;
    let mut wrong = family.wrongs(gold);
    if family == AnswerFamily::Text {
        wrong.extend(extended_or_cut(gold, Template::of(options).closes()));
    }
    if matches!(family, AnswerFamily::Decimal | AnswerFamily::Text) && gold.contains('.') {
        // Where the gold answer is taken for a pattern, a dot stands for anything.
        wrong.push(gold.replace('.', "7"));
    }
    if family == AnswerFamily::Decimal {
        wrong.push(format!(
            "{}3{}",
            &gold[..gold.len() - gold.trim_start_matches('-').len()],
            gold.trim_start_matches('-')
        ));
        let gold: f64 = gold.parse().unwrap_or(0.0);
        // Nobody is to tell a number from one that is the same within two per cent.
        wrong.retain(|wrong| {
            let wrong: f64 = wrong.parse().unwrap_or(f64::NAN);
            (wrong - gold).abs() > 0.02 * gold.abs().max(wrong.abs())
        });
    }
    wrong
}

/// Words with something before or after them, or without some of theirs at one end: with each
/// separator, a line end where a mark ends the answer. Readers that leave articles out are none.
fn extended_or_cut(gold: &str, lines: bool) -> Vec<String> {
    let mut texts = Vec::new();
    for separator in [" ", ", ", "\n"].into_iter().filter(|one| lines || *one != "\n") {
        texts.extend([["Berlin", gold].join(separator), [gold, "Berlin"].join(separator)]);
    }
    for separator in [' ', ',', '\n'] {
        let ends = [gold.split_once(separator), gold.rsplit_once(separator)];
        texts.extend(ends.into_iter().flatten().flat_map(<[&str; 2]>::from).map(str::to_owned));
    }
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.filter(|word| !["a", "an", "the"].contains(word)).map(str::to_owned).collect()
    };
    texts.retain(|text| !words(text).is_empty() && words(text) != words(gold));
    texts.iter_mut().for_each(|text| *text = text.trim().to_owned());
    texts
}

/// Whether a text mentions an answer, as words.
pub(super) fn mentions(text: &str, answer: &str) -> bool {
    let words = |text: &str| {
        let lower = text.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        format!(" {} ", words.join(" "))
    };
    text.contains(answer) && answer.chars().count() > 2 || words(text).contains(&words(answer))
}

/// Whether two scores differ by more than rounding.
pub(super) fn differ(probe: &Probe<'_, RewardFunction>, one: f64, other: f64) -> bool {
    let [lo, hi] = probe.options.range;
    let number = Number::new(other, lo.abs().max(hi.abs()));
    let same = one.is_nan() && other.is_nan();
    !same && apart(one, other, 2.0 * probe.tolerance.bound(number, 1))
}

/// The wrong answers in another order, as many as asked for.
pub(super) fn some(wrong: &[String], count: usize) -> Vec<&str> {
    let order = Pick::seeded(wrong.len() as u64).shuffled(wrong.len());
    order.into_iter().cycle().take(count).map(|at| wrong[at].as_str()).collect()
}
