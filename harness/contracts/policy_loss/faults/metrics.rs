//! Faults of the metrics `clip_fraction` and `approx_kl`; loss and gradient are right.

use ndarray::Array0;

use super::super::{Advantages, ApproxKl, Options, PolicyLossCase, PolicyLossOutput};
use super::{Fault, Variant, right, tokens};

/// The share of clipped tokens.
pub(super) fn clip_fraction() -> Vec<Fault> {
    vec![
        Fault::new(
            "clip-fraction-counts-the-unclipped",
            "`clip_fraction` counts exactly the tokens beyond the bounds that are not clipped",
        )
        .seen("trl #3032, #3145 (dee37342a)")
        .made_of([counted(|ratio, a, bounds| {
            (a > 0.0 && ratio < bounds.lo) || (a < 0.0 && ratio > bounds.hi)
        })]),
        Fault::new(
            "clip-fraction-ignores-the-sign",
            "`clip_fraction` counts every token beyond the bounds",
        )
        .seen("trl #3175 (5b586da3c)")
        .made_of([counted(|ratio, _, bounds| ratio < bounds.lo || ratio > bounds.hi)]),
        Fault::new(
            "clip-fraction-after-the-minimum",
            "`clip_fraction` compares what is already clipped, and is always 0",
        )
        .seen("verl #972 (88db55407)")
        .made_of([counted(|_, _, _| false)]),
        Fault::new(
            "clip-fraction-counts-zero-advantages",
            "`clip_fraction` counts tokens without an advantage as if it were positive",
        )
        .seen("`A >= 0` for `A > 0`")
        .made_of([counted(|ratio, a, bounds| {
            (a >= 0.0 && ratio > bounds.hi) || (a < 0.0 && ratio < bounds.lo)
        })]),
        Fault::new(
            "clip-fraction-counts-the-dual-clip",
            "`clip_fraction` also counts the tokens that `dual_clip` stops",
        )
        .seen("one fraction for verl's two")
        .under("{dual_clip: 3}")
        .made_of([counted(|ratio, a, bounds| {
            (a > 0.0 && ratio > bounds.hi)
                || (a < 0.0 && (ratio < bounds.lo || ratio > bounds.dual))
        })]),
        Fault::new(
            "clip-fraction-diluted-by-padding",
            "`clip_fraction` is a share of all places, masked ones too",
        )
        .seen("`.mean()` after the multiplication by the mask")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let share = tokens(&case.mask) as f64 / case.mask.len() as f64;
            PolicyLossOutput { clip_fraction: right.clip_fraction.map(|f| f * share), ..right }
        }]),
    ]
}

/// The divergence from the old policy.
pub(super) fn approx_kl() -> Vec<Fault> {
    vec![
        Fault::new("approx-kl-sign-flipped", "`approx_kl` is the divergence with the other sign")
            .seen("trl #168 (a757ac436)")
            .gives(&[|case, options, dtype| {
                let right = right(case, options, dtype);
                PolicyLossOutput { approx_kl: right.approx_kl.map(|kl| -kl), ..right }
            }]),
        Fault::new(
            "approx-kl-averages-the-ratio",
            "`approx_kl` is the mean of the ratio with the other sign: -1 on the policy",
        )
        .seen("OpenRLHF feeb0283, 3a9815c5")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
            let ratios: f64 =
                kept.map(|(at, _)| (case.log_probs[at] - case.old_log_probs[at]).exp()).sum();
            let mean = -ratios / tokens(&case.mask).max(1) as f64;
            PolicyLossOutput { approx_kl: Some(Array0::from_elem((), mean)), ..right }
        }]),
        Fault::new(
            "approx-kl-diluted-by-padding",
            "`approx_kl` is a mean over all places, masked ones too",
        )
        .seen("trlx")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let share = tokens(&case.mask) as f64 / case.mask.len() as f64;
            PolicyLossOutput { approx_kl: right.approx_kl.map(|kl| kl * share), ..right }
        }]),
        Fault::new(
            "approx-kl-of-another-definition",
            "`approx_kl` is the mean of another estimator than the declared one",
        )
        .seen("TRL's ½x² where verl's -x is declared")
        .made_of([defined(ApproxKl::K2), defined(ApproxKl::K3), defined(ApproxKl::K1)]),
    ]
}

/// The bounds of a ratio.
struct Bounds {
    lo: f64,
    hi: f64,
    /// The bound where A < 0.
    dual: f64,
}

/// The right output, with another share of counted tokens: `is` gets ratio, advantage and bounds.
fn counted(is: fn(f64, f64, &Bounds) -> bool) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let right = right(case, options, dtype);
        let advantages = Advantages::of(case);
        let limit = options.log_ratio_clamp.unwrap_or(f64::INFINITY);
        let (lo, hi) = options.bounds();
        let bounds = Bounds { lo, hi, dual: options.dual().unwrap_or(f64::INFINITY) };
        let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
        let flagged = kept.filter(|(at, _)| {
            let ratio = (case.log_probs[*at] - case.old_log_probs[*at]).clamp(-limit, limit).exp();
            is(ratio, advantages.at(at.0, at.1), &bounds)
        });
        let share = flagged.count() as f64 / tokens(&case.mask).max(1) as f64;
        PolicyLossOutput { clip_fraction: Some(Array0::from_elem((), share)), ..right }
    })
}

/// The right output, with the metric of another definition.
fn defined(approx_kl: ApproxKl) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let other = right(case, &Options { approx_kl, ..options.clone() }, dtype);
        PolicyLossOutput { approx_kl: other.approx_kl, ..right(case, options, dtype) }
    })
}
