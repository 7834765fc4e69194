//! The KL to the reference leaps up in single rows.
//!
//! ### Fires when
//! The KL of a row is more than 20 times the median of the 21 rows around it, and above half a nat:
//! a warning where three rows are (in long runs one in a hundred), or one is above five nats, else
//! a note.
//!
//! ### Not said
//! That the policy leapt: the k3 estimate grows with the exponential of a log-ratio, and one token
//! suffices.
//!
//! ### Causes
//! - tokens that the policy all but excludes, under a k3 estimate without a clamp
//! - a batch whose masks or completions belong to other prompts
//! - an update that was too large for one batch
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - clamp the log-ratio before its exponential, or use k2
//!
//! ### Source
//! <http://joschu.net/blog/kl-approx.html> on the estimates and their variance.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::around::{habit, spikes, steps};
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["kl.ref"],
    explains: &[],
    contracts: &[(
        "kl-estimate",
        &["beyond-the-log-ratio-clamp", "within-the-clamp", "gradient-finite", "finite"],
    )],
    catches: &["kl-unclamped"],
    check,
};

/// How many times the rows around it, and how many nats at least.
const LIMITS: [f64; 2] = [20.0, 0.5];

/// A row with more nats than this is a warning alone.
const HIGH: f64 = 5.0;

fn check(run: &Run) -> Judgement {
    let kl = run.need("kl.ref", 21)?;
    let found = spikes(kl, LIMITS[0], LIMITS[1]);
    let Some(highest) = found.iter().copied().max_by(|a, b| a.height.total_cmp(&b.height)) else {
        return Ok(vec![]);
    };
    let text = format!(
        "{} with a KL above {} times that of the rows around, the highest {} nats among {}",
        count(found.len() as u64, "row"),
        LIMITS[0],
        short(highest.height),
        short(highest.around),
    );
    let many = found.len() >= habit(kl.points()) || highest.height > HIGH;
    let firing = if many { Firing::warning(text) } else { Firing::note(text) };
    let limit = Some((LIMITS[0] * highest.around).max(LIMITS[1]));
    firing.at_steps(steps(&found)).metric("kl.ref", "max", highest.height, limit).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::rules::trial2::{always, run, said, scatter, steps};

    const RULE: &str = "kl-spikes";

    #[test]
    fn three_leaps_or_a_very_high_one_are_a_warning() {
        let three = |i: usize| if i % 40 == 30 { 0.9 } else { 0.01 };
        always("warning", RULE, |seed| {
            run(120, &[("kl.ref", &|i| three(i) * scatter(seed, i, 0.1))])
        });
        let one = |i: usize| if i == 50 { 8.0 } else { 0.01 };
        let run = run(120, &[("kl.ref", &one)]);
        assert_eq!(said(&run, RULE), "warning");
        assert_eq!(steps(&run, RULE), Some([7 * 50 + 3; 2]));
    }

    #[test]
    fn a_leap_or_two_are_a_note() {
        let two = |i: usize| if i % 50 == 30 { 0.9 } else { 0.01 };
        assert_eq!(said(&run(100, &[("kl.ref", &two)]), RULE), "note");
        let four_in_3000 = |i: usize| if i % 800 == 30 { 0.9 } else { 0.01 };
        assert_eq!(said(&run(3000, &[("kl.ref", &four_in_3000)]), RULE), "note");
    }

    #[test]
    fn growth_scatter_and_small_leaps_are_none() {
        let grows = |i: usize| 1e-4 * (i as f64 * 0.08).exp();
        assert_eq!(said(&run(150, &[("kl.ref", &grows)]), RULE), "quiet");
        always("quiet", RULE, |seed| run(400, &[("kl.ref", &|i| 0.05 * scatter(seed, i, 0.7))]));
        let small = |i: usize| if i % 40 == 30 { 0.4 } else { 0.001 };
        assert_eq!(said(&run(120, &[("kl.ref", &small)]), RULE), "quiet");
    }

    #[test]
    fn fewer_than_21_rows_have_no_neighbours() {
        assert_eq!(said(&run(20, &[("kl.ref", &|i| i as f64)]), RULE), "insufficient");
    }
}
