//! The reward rises while what is meant gets worse.
//!
//! ### Fires when
//! `reward.mean` rises, while a held-out score (6 evaluations or more) or a part of the reward that
//! is named correct, accuracy, answer, exact or solved falls: from its first fifth to its last by 3
//! standard errors and a tenth, or from its best by 4 and two fifths; a part, which is measured on
//! prompts that may become harder, from its first fifth to its last by 3 and a fifth. An error
//! where a held-out score falls and none rises, else a warning.
//!
//! ### Not said
//! Which part is hacked: compare the parts of the reward.
//!
//! ### Causes
//! - the reward pays for something that is easier than being right
//! - the weights of the parts: what is not meant outweighs what is
//! - the policy has learned the training prompts by heart
//!
//! ### Next
//! - read the ten completions with the highest rewards of the last batch
//! - shakedown check --stage reward
//! - go back to the checkpoint with the best held-out score
//!
//! ### Source
//! Gao, Schulman and Hilton 2022, Scaling Laws for Reward Model Overoptimization (arXiv
//! 2210.10760).

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::statistics::{TREND_POINTS, short};
use crate::runs::truth::{Truth, truths};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["reward.mean", "eval.{name}"],
    explains: &[],
    contracts: &[
        ("reward-function", &["wrong-scores-less", "one-more-tag", "answers-repeated"]),
        ("length-penalty", &["never-rises"]),
    ],
    catches: &["proxy-hacked"],
    check,
};

fn check(run: &Run) -> Judgement {
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    let truths = truths(run);
    if truths.is_empty() {
        return Err(insufficient("no held-out score and no part for being right is logged"));
    }
    let falling: Vec<&Truth> = truths.iter().filter(|truth| truth.falls()).collect();
    let lost = |truth: &Truth| (truth.best - truth.last) / truth.best.abs();
    let worst = falling
        .iter()
        .max_by(|a, b| a.is_held_out.cmp(&b.is_held_out).then(lost(a).total_cmp(&lost(b))));
    let (true, Some(worst)) = (reward.rises(), worst) else { return Ok(vec![]) };
    let others = match falling.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more of {} scores", truths.len()),
    };
    let [before, after] = [reward.first, reward.last].map(short);
    let [first, best, last] = [worst.first, worst.best, worst.last].map(short);
    let found = format!(
        "the reward rises from {before} to {after}, while {} goes from {first} over {best} to \
         {last}{others}",
        worst.id
    );
    let rises = truths.iter().any(|truth| truth.is_held_out && truth.rises());
    let fired = match worst.is_held_out && !rises {
        true => Firing::error(found),
        false => Firing::warning(found),
    };
    fired
        .at_steps(worst.steps)
        .metric(&worst.id, "mean of the last fifth", worst.last, Some(worst.best))
        .metric("reward.mean", "z", reward.trend(), Some(4.0))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    fn severity(rows: usize, metrics: &[Metric<'_>]) -> Option<Severity> {
        let rises = |i: usize| 0.2 + 0.5 * i as f64 / rows as f64 + 0.01 * noise(1, i);
        let own: [Metric<'_>; 1] = [("reward.mean", &rises)];
        findings(&run(rows, &[&own, metrics].concat()), "proxy-gain")
            .first()
            .map(|(severity, _)| *severity)
    }

    /// A score of every tenth row that goes from 0.5 by so much.
    fn score(by: f64, rows: usize, seed: u64) -> impl Fn(usize) -> f64 {
        move |i| match i % 10 {
            9 => 0.5 + by * i as f64 / rows as f64 + 0.02 * noise(seed, i),
            _ => f64::NAN,
        }
    }

    #[test]
    fn a_held_out_score_that_falls_is_an_error() {
        for seed in 0..30 {
            let falls = score(-0.3, 100, seed);
            assert_eq!(severity(100, &[("eval.math", &falls)]), Some(Severity::Error), "{seed}");
        }
    }

    #[test]
    fn one_of_two_scores_is_a_warning() {
        let (falls, rises) = (score(-0.3, 100, 2), score(0.3, 100, 3));
        let metrics: [Metric<'_>; 2] = [("eval.code", &falls), ("eval.math", &rises)];
        assert_eq!(severity(100, &metrics), Some(Severity::Warning));
    }

    #[test]
    fn a_part_for_being_right_that_falls_is_a_warning() {
        let falls = |i: usize| 0.6 - 0.003 * i as f64 + 0.02 * noise(5, i);
        let part = |id| severity(100, &[(id, &falls)]);
        assert_eq!(part("reward.part.correctness"), Some(Severity::Warning));
        assert_eq!(part("reward.part.answer_format"), None);
        assert_eq!(part("reward.part.brevity"), None);
    }

    #[test]
    fn scores_that_scatter_stay_or_rise_are_none() {
        for seed in 0..200 {
            for by in [0.0, 0.2] {
                let scatter = score(by, 80, seed);
                assert_eq!(severity(80, &[("eval.math", &scatter)]), None, "seed {seed}");
            }
        }
    }

    #[test]
    fn lengths_and_cut_completions_of_an_evaluation_are_no_scores() {
        let falls = score(-0.4, 100, 2);
        for id in ["eval.math/response_len", "eval.truncated_ratio", "eval.math/acc/best@8/std"] {
            assert_eq!(severity(100, &[(id, &falls)]), None, "{id}");
        }
    }

    #[test]
    fn five_evaluations_are_too_few() {
        let falls = score(-0.4, 50, 2);
        assert_eq!(severity(50, &[("eval.math", &falls)]), None);
    }
}
