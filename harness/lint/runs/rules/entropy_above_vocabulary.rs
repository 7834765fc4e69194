//! The entropy is larger than that of a uniform choice among all tokens.
//!
//! ### Fires when
//! The median of `entropy` is above ln V: V the setting `vocabulary`, else 300,000, which is more
//! than any tokenizer has (12.6 nats). A note where the configuration asks for sums over
//! completions and pays no entropy, so that only the figure is a sum.
//!
//! ### Not said
//! That the policy is too random: no policy can be so.
//!
//! ### Causes
//! - the entropy is summed over the tokens of a completion, not averaged: `loss_agg_mode`
//! - padding is counted on one side of a division
//! - entropies are made of log-probabilities that are none
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - divide by the number of tokens that the mask keeps
//!
//! ### Source
//! rllm#391. No distribution over V tokens has more than ln V.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::runs::derived::tolerance;
use crate::runs::statistics::median;
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["entropy"],
    explains: &[],
    contracts: &[
        ("token-entropy", &["bounded", "uniform"]),
        ("accumulated-loss", &["constant-loss"]),
    ],
    catches: &["entropy-summed"],
    check,
};

/// More tokens than any tokenizer has.
const MOST_TOKENS: f64 = 300_000.0;

fn check(run: &Run) -> Judgement {
    let entropy = run.need("entropy", 3)?;
    let tokens = known::vocabulary(run).unwrap_or(MOST_TOKENS);
    let (middle, most) = (median(&entropy.values()), tokens.ln());
    if middle <= most + tolerance(middle, most, entropy.resolution) {
        return Ok(vec![]);
    }
    let aggregate = run.settings.text("loss.aggregate").filter(|how| how.ends_with("-sum"));
    let is_only_shown = aggregate.is_some() && known::entropy_is_paid(run) == Some(false);
    let severity = if is_only_shown { Severity::Note } else { Severity::Error };
    let found = format!(
        "the median of {} is {}, and no choice among {tokens} tokens has more than {}",
        entropy.name,
        rounded(middle),
        rounded(most),
    );
    let firing = Firing::new(severity, found)
        .at_steps(run.steps_where("entropy", |bucket| bucket.max > most).unwrap_or_default())
        .metric("entropy", "median", middle, Some(most));
    match aggregate {
        Some(how) => firing.because(Some("loss.aggregate"), format!("losses are added up: {how}")),
        None => firing,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{run, severities, status};
    use crate::report::{RuleStatus, Severity};

    const RULE: &str = "entropy-above-vocabulary";

    fn entropies(rows: usize, entropy: f64) -> crate::runs::Run {
        run(rows, |_| vec![("entropy", entropy)])
    }

    #[test]
    fn the_limit_is_that_of_the_largest_vocabulary() {
        assert_eq!(status(&entropies(3, 12.62), RULE), RuleStatus::Quiet);
        assert_eq!(severities(&entropies(3, 12.7), RULE), [Severity::Error]);
        assert_eq!(status(&entropies(2, 400.0), RULE), RuleStatus::Insufficient);
        let known = entropies(3, 3.0).with(None, &[("vocabulary", 12.into())]);
        assert_eq!(severities(&known, RULE), [Severity::Error]);
    }

    #[test]
    fn single_rows_may_be_odd() {
        let run = run(20, |row| vec![("entropy", if row < 9 { 50.0 } else { 0.4 })]);
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn a_sum_that_was_asked_for_and_trains_nothing_is_a_note() {
        let sums = [("loss.aggregate", "seq-mean-token-sum".into())];
        assert_eq!(severities(&entropies(9, 80.0).with(None, &sums), RULE), [Severity::Error]);
        let unpaid = [sums[0].clone(), ("entropy.coef", 0.into())];
        assert_eq!(severities(&entropies(9, 80.0).with(None, &unpaid), RULE), [Severity::Note]);
    }
}
