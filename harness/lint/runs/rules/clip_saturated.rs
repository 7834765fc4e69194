//! A large share of the tokens is clipped.
//!
//! ### Fires when
//! The share of clipped tokens is 0.2 or more in the middle or at the end of the run; an error at
//! 0.5. Ratios of whole sequences are clipped more often by design: there it is a warning from 0.5.
//!
//! ### Not said
//! That a clipped token is wrong: it is one from which this batch teaches no more.
//!
//! ### Causes
//! - the old log-probabilities are those of an earlier policy
//! - too many passes over one batch, or too many updates of it
//! - a clip range that is too tight, or one for sequences on the ratios of tokens
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check --stage log-probability
//! - reduce the passes over a batch to one, where nothing should be clipped
//!
//! ### Source
//! PPO, arXiv 1707.06347, clips what left the trust region: not what stays in it; GSPO, arXiv
//! 2507.18071, on the share under sequence ratios.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["clip.frac"],
    explains: &[],
    contracts: &[("policy-loss", &["clip-fraction", "clipped-tokens", "metrics-on-policy"])],
    catches: &["old-stale"],
    check,
};

/// Shares that are a warning, and an error.
const LIMITS: [f64; 2] = [0.2, 0.5];

fn check(run: &Run) -> Judgement {
    let clipped = run.figures("clip.frac", 5)?;
    let most = clipped.mid.max(clipped.last);
    let (limit, severe) = match of_sequences(run) {
        true => (LIMITS[1], false),
        false => (LIMITS[0], most >= LIMITS[1]),
    };
    if most < limit {
        return Ok(vec![]);
    }
    let found = format!(
        "{} of the tokens are clipped in the middle of the run, {} at its end",
        short(clipped.mid),
        short(clipped.last),
    );
    let limit = if severe { LIMITS[1] } else { limit };
    let steps = run.steps_where("clip.frac", |row| row.mean >= limit).unwrap_or_default();
    let firing = if severe { Firing::error(found) } else { Firing::warning(found) };
    firing.at_steps(steps).metric("clip.frac", "max of mid and last", most, Some(limit)).into()
}

/// Whether one ratio is taken of each completion.
fn of_sequences(run: &Run) -> bool {
    let text = run.settings.text("ratio.level").unwrap_or_default();
    text.contains("seq") || text.contains("gspo") || run.settings.flag("ratio.level") == Some(true)
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, run, said, scatter, set};

    const RULE: &str = "clip-saturated";

    fn clips(rows: usize, share: f64, seed: u64) -> Run {
        run(rows, &[("clip.frac", &|i| share * scatter(seed, i, 0.1))])
    }

    #[test]
    fn many_clipped_tokens_are_found() {
        always("warning", RULE, |seed| clips(60, 0.3, seed));
        always("error", RULE, |seed| clips(60, 0.7, seed));
        let over = |i: usize| if (40..60).contains(&i) { 0.6 } else { 0.001 };
        assert_eq!(said(&run(100, &[("clip.frac", &over)]), RULE), "error");
        assert_eq!(said(&run(5, &[("clip.frac", &|_| 0.2)]), RULE), "warning");
    }

    #[test]
    fn few_clipped_tokens_and_a_beginning_are_left_alone() {
        always("quiet", RULE, |seed| clips(60, 0.1, seed));
        let first = |i: usize| if i < 10 { 0.9 } else { 0.01 };
        assert_eq!(said(&run(100, &[("clip.frac", &first)]), RULE), "quiet");
        assert_eq!(said(&clips(4, 0.9, 1), RULE), "insufficient");
    }

    #[test]
    fn sequences_are_clipped_more_often() {
        always("quiet", RULE, |seed| set(clips(60, 0.3, seed), "ratio.level", "sequence"));
        always("warning", RULE, |seed| set(clips(60, 0.7, seed), "ratio.level", "sequence"));
    }
}
