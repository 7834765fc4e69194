//! Faults of averages over tokens, and of the lengths by which they are taken.

use ndarray::Array1;

use super::super::reference::{Side, log_odds};
use super::super::{Kind, Options, PairObjectiveCase, reference};
use super::{Fault, Variant, changed, of, of_sides, with_right_rewards};

/// Averages over tokens, and the lengths by which they are taken.
pub(super) fn averages() -> Vec<Fault> {
    vec![
        Fault::new("ipo-on-sums", "the squared margin of sums where averages are declared")
            .seen("LLaMA-Factory 52d402e2a")
            .under("{kind: ipo-norm}")
            .made_of([of(Kind::IpoNorm, |p| {
                let difference = p.chosen.ratio() - p.rejected.ratio();
                p.squared(difference, p.options.target())
            })]),
        Fault::new("sums-for-averages", "log-probabilities are not divided by the lengths")
            .seen("DPO's sums given to SimPO; open-instruct averages for `simpo` and `dpo_norm`")
            .made_of([with_lengths(|_| [1, 1])]),
        Fault::new("lengths-swapped", "each side is divided by the other side's length")
            .seen("a concatenated batch split in the wrong order for the lengths alone")
            .made_of([
                with_lengths(|[chosen, rejected]| [rejected, chosen]),
                // Those of the odds alone.
                of(Kind::Orpo, |p| {
                    let of_chosen = log_odds(p.chosen.policy / p.rejected.length);
                    p.orpo(of_chosen - log_odds(p.rejected.policy / p.chosen.length))
                }),
            ]),
        Fault::new("one-length-for-both", "both sides are divided by one length")
            .seen("the width of the padded batch, or one side's mask, for both")
            .made_of([
                with_lengths(|[chosen, rejected]| [chosen.max(rejected); 2]),
                with_lengths(|[chosen, _]| [chosen; 2]),
                with_lengths(|[_, rejected]| [rejected; 2]),
                with_lengths(|[chosen, rejected]| [chosen + rejected; 2]),
            ]),
        Fault::new("width-for-the-length", "sums are divided by the width of the padded batch")
            .seen("`.mean(-1)` over columns where the mask's sum belongs")
            .made_of([widths(false), widths(true)]),
        Fault::new("lengths-off-by-one", "one token too few or too many is counted")
            .seen("labels shifted by one after their tokens were counted, or before")
            .made_of([
                with_lengths(|lengths| lengths.map(|length| length + 1)),
                with_lengths(|lengths| lengths.map(|length| (length - 1).max(1))),
            ]),
        Fault::new("averages-for-sums", "log-ratios are averaged where sums are declared")
            .seen("IPO's average over tokens switched on for every loss")
            .under("{kind: bco-pair}")
            .made_of([of_sides(|side, options| match options.kind.averages() {
                true => side,
                false => Side {
                    policy: side.average(),
                    reference: side.reference / side.length,
                    length: 1.0,
                    ..side
                },
            })]),
        Fault::new("reference-not-averaged", "the policy is averaged over tokens alone")
            .seen("reference log-probabilities from a cache, where they are sums")
            .under("{kind: sigmoid-norm}")
            .made_of([of_sides(|side, options| match options.kind.averages() {
                true => Side { reference: side.reference * side.length, ..side },
                false => side,
            })]),
        Fault::new("reference-averaged-alone", "the reference is averaged over tokens alone")
            .seen("`average_log_prob` given to the reference's forward pass only")
            .under("{kind: ipo-norm}")
            .made_of([of_sides(|side, options| match options.kind {
                Kind::Orpo | Kind::Simpo => side,
                Kind::SigmoidNorm | Kind::IpoNorm => {
                    Side { policy: side.policy * side.length, ..side }
                }
                _ => Side { reference: side.reference / side.length, ..side },
            })]),
        Fault::new("averages-of-the-detached-sum", "gradients are not divided by the lengths")
            .seen("a scale that the value alone has: x + (x/n - x).detach()")
            .made_of([changed(|output, case, options| {
                if options.kind.averages() {
                    let times = |gradient: &mut Array1<f64>, lengths: &Array1<i64>| {
                        gradient.zip_mut_with(lengths, |x, length| *x *= *length as f64);
                    };
                    output.grad_policy_chosen.iter_mut().for_each(|gradient| {
                        times(gradient, &case.chosen_lengths);
                    });
                    output.grad_policy_rejected.iter_mut().for_each(|gradient| {
                        times(gradient, &case.rejected_lengths);
                    });
                }
            })]),
    ]
}

/// The losses and gradients of other lengths, and rewards of the declared ones.
fn with_lengths(change: fn([i64; 2]) -> [i64; 2]) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        let mut other = case.clone();
        let lengths = other.chosen_lengths.iter_mut().zip(&mut other.rejected_lengths);
        for (chosen, rejected) in lengths {
            [*chosen, *rejected] = change([*chosen, *rejected]);
        }
        with_right_rewards(reference::loss(&other, options, dtype), case, options, dtype)
    })
}

/// The same with the longest completion of the batch, or of each side.
fn widths(apart: bool) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        let mut other = case.clone();
        let longest = |lengths: &Array1<i64>| lengths.iter().copied().max().expect("a pair");
        let [chosen, rejected] = [&case.chosen_lengths, &case.rejected_lengths].map(longest);
        let both = chosen.max(rejected);
        other.chosen_lengths.fill(if apart { chosen } else { both });
        other.rejected_lengths.fill(if apart { rejected } else { both });
        with_right_rewards(reference::loss(&other, options, dtype), case, options, dtype)
    })
}
