//! The reward rises, and the KL to the reference is too small for that.
//!
//! ### Fires when
//! The reward rises by half of its scale or more, while `kl.ref` is above 0 and too small. Where
//! the mean length and the range of the rewards are logged: all tokens together have less than half
//! of the nats that such a rise takes. Else: the KL ends below 2e-3 and was at half of that in the
//! first rows already.
//!
//! ### Not said
//! That the reference follows the policy: it may be that the KL is wrong, or divided twice. Nothing
//! is said where the reference is updated on purpose.
//!
//! ### Causes
//! - the reference is the policy, one update behind: shared weights, or a copy that follows it
//! - the KL is to the policy that sampled
//! - the KL is divided by the length or the batch twice
//!
//! ### Next
//! - shakedown check --stage update
//! - shakedown check --stage log-probability
//! - compare one weight of the reference before and after an update
//!
//! ### Source
//! Pinsker's inequality: to move a mean by the share d of its range takes 2 d² nats.

use std::collections::BTreeMap;

use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::runs::statistics::{Statistics, TREND_POINTS, median, short};
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["kl.ref", "reward.mean"],
    explains: &[],
    contracts: &[
        ("policy-update", &["reference-unchanged"]),
        ("kl-estimate", &["zero-when-equal"]),
    ],
    catches: &["reference-follows"],
    check,
};

/// The share of the rewards' scale that is a rise.
const RISE: f64 = 0.5;
/// Nats per token that a policy keeps to a copy of itself.
const SMALL: f64 = 2e-3;
/// A KL that was at this share of its end in the first rows has not grown.
const GROWN: f64 = 0.5;
/// Estimates scatter: only below this share of what it takes there is too little.
const TOO_LITTLE: f64 = 0.5;

fn check(run: &Run) -> Judgement {
    let kl = run.figures("kl.ref", TREND_POINTS)?;
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    if known::reference_moves(run) {
        return Err(not_applicable("the reference is updated on purpose"));
    }
    if known::is_distilled(run) {
        return Err(not_applicable("the reference is a teacher, which is another model"));
    }
    let gain = reward.last - reward.start().0;
    let is_rise = run.reward_scale().is_some_and(|scale| gain >= RISE * scale);
    let resolution = run.series["kl.ref"].resolution;
    if !reward.rises() || !is_rise || kl.last <= resolution {
        return Ok(vec![]);
    }
    let [before, after] = [reward.start().0, reward.last].map(short);
    let rise = format!("the reward rises from {before} to {after}");
    let steps = run.steps_from("kl.ref", 0);
    match nats(run, &kl).zip(range(run)) {
        Some((nats, range)) => {
            let least = TOO_LITTLE * 2.0 * (gain / range).min(1.0).powi(2);
            if nats + resolution >= least {
                return Ok(vec![]);
            }
            let found = format!(
                "{rise}, and the KL of a whole completion to the reference is {} nats; such a \
                 rise takes {} at least",
                short(nats),
                short(least / TOO_LITTLE),
            );
            let fired = Firing::warning(found).at_steps(steps);
            fired.metric("kl.ref", "nats per completion", nats, Some(least)).into()
        }
        None if kl.last < SMALL && kl.start().0 >= GROWN * kl.last => {
            let [first, last] = [kl.start().0, kl.last].map(short);
            let found = format!(
                "{rise}, and the KL to the reference stays at {first} to {last}: the reference \
                 may follow the policy"
            );
            let fired = Firing::warning(found).at_steps(steps);
            fired.metric("kl.ref", "last", kl.last, Some(kl.start().0 / GROWN)).into()
        }
        None => Ok(vec![]),
    }
}

/// The KL of a completion at the end: that of a token times the mean length.
fn nats(run: &Run, kl: &Statistics) -> Option<f64> {
    let lengths = run.get("length.mean")?;
    let lengths: BTreeMap<u64, f64> = lengths.finite().map(|row| (row.index, row.mean)).collect();
    let rows = run.get("kl.ref")?.finite();
    let all = rows.filter_map(|row| Some(row.mean * lengths.get(&row.index)?));
    let all: Vec<f64> = all.collect();
    (all.len() >= kl.window).then(|| median(&all[all.len() - kl.window..]))
}

/// What lies between the smallest and the largest reward.
fn range(run: &Run) -> Option<f64> {
    let extremes = run.get("reward.max").is_some() && run.get("reward.min").is_some();
    let known = extremes || run.settings.number("reward_max").is_some();
    Some(run.marks(1.0).filter(|_| known)? - run.marks(0.0)?)
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{Column, always, noise, run, said, scatter};

    const RULE: &str = "kl-stays";

    fn learns(seed: u64, kl: &dyn Fn(usize) -> f64, more: &[Column<'_>]) -> Run {
        let reward = |i: usize| (0.004 * i as f64 + 0.02 * noise(seed, i)).max(0.0);
        let kl = |i: usize| kl(i) * scatter(seed + 1, i, 0.1);
        let own: [Column<'_>; 2] = [("reward.mean", &reward), ("kl.ref", &kl)];
        run(100, &[&own, more].concat())
    }

    #[test]
    fn a_kl_that_does_not_grow_with_the_reward_is_found() {
        always("warning", RULE, |seed| learns(seed, &|i| 7e-4 + 3e-6 * i as f64, &[]));
    }

    #[test]
    fn a_kl_that_grows_and_a_reward_that_stays_are_quiet() {
        always("quiet", RULE, |seed| learns(seed, &|i| 1e-5 * (i + 1) as f64, &[]));
        always("quiet", RULE, |seed| learns(seed, &|_| 0.02, &[]));
        always("quiet", RULE, |seed| {
            let reward = |i: usize| 0.4 + 0.02 * noise(seed, i);
            run(100, &[("reward.mean", &reward), ("kl.ref", &|_| 7e-4)])
        });
    }

    #[test]
    fn where_lengths_are_known_all_tokens_together_are_compared() {
        let with = |length: f64| {
            let (top, bottom) = (|_: usize| 1.0, |_: usize| 0.0);
            let length = move |_: usize| length;
            let columns: [Column<'_>; 3] =
                [("reward.max", &top), ("reward.min", &bottom), ("length.mean", &length)];
            said(&learns(3, &|i| 7e-4 + 3e-6 * i as f64, &columns), RULE)
        };
        assert_eq!((with(50.0), with(2000.0)), ("warning", "quiet"));
    }

    #[test]
    fn a_reference_that_is_updated_on_purpose_is_not_judged() {
        let mut run = learns(1, &|_| 7e-4, &[]);
        let value =
            crate::settings::Value { json: true.into(), origin: crate::settings::Origin::Flag };
        run.settings.fields.insert("sync_ref_model".to_owned(), value);
        assert_eq!(said(&run, RULE), "not applicable");
    }
}
