//! What is dropped: by its ratio, by a veto, for its drift; and what becomes of it.

use ndarray::arr0;

use super::{Fault, Variant, after, count, rows, steps};
use crate::importance_weights::reference::{self, Row};
use crate::importance_weights::{ImportanceWeightsCase, Options, Rejected, Select};

/// Another veto.
macro_rules! vetoed {
    ($vetoed:expr) => {
        steps(|s| {
            s.vetoed = |row, options| {
                let vetoed: fn(&Row, f64) -> Vec<bool> = $vetoed;
                match options.veto {
                    Some(v) => vetoed(row, row.round(v)),
                    None => vec![false; row.gaps.len()],
                }
            };
        })
    };
}

/// Another drift, of a row, its advantage and δ.
macro_rules! drifted {
    ($drifted:expr) => {
        steps(|s| {
            s.drifted = |row, options| {
                let drifted: fn(&Row, f64, f64) -> Vec<bool> = $drifted;
                match (options.drift, row.advantage) {
                    (Some(limit), Some(advantage)) => drifted(row, advantage, row.round(limit)),
                    _ => vec![false; row.gaps.len()],
                }
            };
        })
    };
}

/// The same, one answer for the row.
macro_rules! row_drifted {
    ($drifted:expr) => {
        drifted!(|row, advantage, limit| {
            let drifted: fn(&Row, f64, f64) -> bool = $drifted;
            vec![drifted(row, advantage, limit); row.gaps.len()]
        })
    };
}

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    [select(), veto(), drift(), rejected()].into_iter().flatten().collect()
}

/// The bounds of the ratio.
fn select() -> Vec<Fault> {
    vec![
        Fault::new("select-ignored", "nothing is dropped for its ratio")
            .seen("mutation: an option without effect")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .as_if(&[|options| Options { select: Select::None, ..options }]),
        Fault::new("select-low-ignored", "what is below `select_low` is kept")
            .seen("mutation: trl's mask modes have an upper bound only")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .as_if(&[|options| Options { select_low: None, ..options }]),
        Fault::new("select-high-ignored", "what is above `select_high` is kept")
            .seen("mutation: one of two bounds forgotten")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .as_if(&[|options| Options { select_high: None, ..options }]),
        Fault::new(
            "row-goes-for-one-token",
            "a row goes for any token outside the bounds where its mean decides",
        )
        .seen("mutation: `any` over tokens; slime has that as a mode of its own")
        .under("{select: geometric, select_low: 0.5, select_high: 2.5}")
        .made_of([steps(|s| {
            s.outside = |row, options| {
                let tokens = Options { select: Select::Token, ..options.clone() };
                let any = reference::outside(row, &tokens).into_iter().any(|outside| outside);
                vec![any && options.select != Select::None; row.gaps.len()]
            };
        })]),
        Fault::new(
            "tokens-dropped-one-by-one",
            "tokens are dropped by their own ratio where that of their row decides",
        )
        .seen("mutation: OpenRLHF's icepop where its seq-mask-tis is declared")
        .under("{select: geometric, select_low: 0.5, select_high: 2.5}")
        .as_if(&[|options| Options { select: Select::Token, ..options }]),
        Fault::new(
            "rows-dropped-for-tokens",
            "the ratio of the row decides where the token's own does",
        )
        .seen("mutation: OpenRLHF's seq-mask-tis where its icepop is declared")
        .under("{select: token, select_low: 0.5, select_high: 2.5}")
        .as_if(&[
            |options| Options { select: Select::Geometric, ..options },
            |options| Options { select: Select::Sequence, ..options },
        ]),
        Fault::new(
            "mean-decides-for-the-product",
            "the geometric mean decides where the product does",
        )
        .seen("mutation: two modes of one option exchanged")
        .under("{select: sequence, select_low: 0.5, select_high: 2.5}")
        .as_if(&[|options| Options { select: Select::Geometric, ..options }]),
        Fault::new(
            "product-decides-for-the-mean",
            "the product decides where the geometric mean does",
        )
        .seen("mutation: two modes of one option exchanged")
        .under("{select: geometric, select_low: 0.5, select_high: 2.5}")
        .as_if(&[|options| Options { select: Select::Sequence, ..options }]),
        Fault::new(
            "mean-of-ratios-decides",
            "the arithmetic mean of a row's ratios decides where the geometric one does",
        )
        .seen("mutation: exp before the mean")
        .under("{select: geometric, select_low: 0.5, select_high: 2.5}")
        .made_of([steps(|s| {
            s.outside = |row, options| {
                let ratios: Vec<f64> = row.gaps.iter().map(|gap| row.exp(*gap)).collect();
                vec![is_outside(row.mean(&ratios), options); row.gaps.len()]
            };
        })]),
        Fault::new(
            "row-needs-every-token",
            "a row goes if all of its tokens are outside the bounds, and stays else",
        )
        .seen("mutation: `all` for `any`, or over tokens that each have their own ratio")
        .under("{select: token, select_low: 0.5, select_high: 2.5}")
        .made_of([steps(|s| {
            s.outside = |row, options| {
                let tokens = Options { select: Select::Token, ..options.clone() };
                let all = reference::outside(row, &tokens).into_iter().all(|outside| outside);
                vec![all && options.select != Select::None; row.gaps.len()]
            };
        })]),
        Fault::new("one-ratio-drops-the-batch", "one ratio outside the bounds drops every row")
            .seen("mutation: `any` or `all` without its axis")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .made_of([after(|output, case, options, dtype| {
                let mut rows = rows(case, dtype).into_iter();
                if rows.any(|row| reference::outside(&row, options).contains(&true)) {
                    output.keep.iter_mut().for_each(|keep| keep.fill(0.0));
                    output.weights.fill(0.0);
                    output.clip_fraction = Some(arr0(1.0));
                }
            })]),
        Fault::new(
            "clamped-for-dropped",
            "weights are held at `select_low` and `select_high`, and nothing is dropped",
        )
        .seen("trl #5814: truncating and masking are both honest, and two options")
        .under("{clamp_high: null, select: token, select_low: 0.5, select_high: 2.5}")
        .as_if(&[|options| Options {
            select: Select::None,
            clamp_low: options.select_low.or(options.clamp_low),
            clamp_high: options.select_high.or(options.clamp_high),
            ..options
        }]),
        Fault::new("selection-divides-by-the-width", "the mean that decides divides by T")
            .seen("mutation: `.mean(-1)` of masked log-ratios")
            .under("{select: geometric, select_low: 0.5, select_high: 2.5}")
            .made_of([steps(|s| {
                s.outside = |row, options| {
                    let mean = row.sum(row.gaps.iter().copied()) / row.width as f64;
                    vec![is_outside(row.exp(mean), options); row.gaps.len()]
                };
            })]),
        Fault::new("kept-and-dropped-exchanged", "what is within the bounds is dropped")
            .seen("mutation: a mask that is inverted")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .made_of([steps(|s| {
                s.outside = |row, options| {
                    let outside = reference::outside(row, options);
                    let inverted = options.select != Select::None;
                    outside.into_iter().map(|outside| outside != inverted).collect()
                };
            })]),
        Fault::new(
            "selected-by-the-clamped-weight",
            "the bounds look at the weight and its clamp, not at the ratio that selects",
        )
        .seen("mutation: the variable is overwritten by the truncation before")
        .under("{level: geometric, select: token, select_low: 0.5, select_high: 2.5}")
        .made_of([steps(|s| {
            s.outside = |row, options| {
                let ratios = reference::ratios(row, options.level, options).into_iter();
                let held = ratios.map(|ratio| reference::clamped(row, ratio, options));
                held.map(|ratio| is_outside(ratio, options)).collect()
            };
        })]),
        Fault::new("bounds-of-the-log-ratio", "the bounds are compared with the log-ratio")
            .seen("mutation: the comparison stands before exp")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .made_of([steps(|s| {
                s.outside = |row, options| {
                    let Some(level) = options.select.level() else {
                        return vec![false; row.gaps.len()];
                    };
                    let exponents = reference::exponents(row, level).into_iter();
                    exponents.map(|x| is_outside(x, options)).collect()
                };
            })]),
        Fault::new(
            "lower-bound-is-the-reciprocal",
            "`select_low` is one over `select_high` where it is null",
        )
        .seen("mutation: verl's threshold of one number, whose lower bound is the reciprocal")
        .under("{select: token, select_high: 2.5}")
        .as_if(&[|options| Options {
            select_low: options.select_high.map(|high| 1.0 / high),
            ..options
        }]),
        Fault::new("bounds-of-the-reversed-ratio", "the bounds are those of sampler over policy")
            .seen("verl's k1 threshold \"lo_hi\", which bounds sampler over policy")
            .under("{select: token, select_low: 0.5, select_high: 5}")
            .as_if(&[|options| Options {
                select_low: options.select_high.map(|high| 1.0 / high),
                select_high: options.select_low.map(|low| 1.0 / low),
                ..options
            }]),
        Fault::new(
            "selected-although-not-declared",
            "ratios far from 1 are dropped, and nothing says so",
        )
        .seen("mutation: icepop's 0.5 and 5, or slime's bounds, as defaults")
        .as_if(&[
            |options| Options {
                select: Select::Token,
                select_low: Some(0.5),
                select_high: Some(5.0),
                ..options
            },
            |options| Options {
                select: Select::Geometric,
                select_low: Some(0.5),
                select_high: Some(2.0),
                ..options
            },
        ]),
    ]
}

/// The veto of one token.
fn veto() -> Vec<Fault> {
    vec![
        Fault::new("veto-ignored", "no row goes for an unlikely token")
            .seen("mutation: an option without effect")
            .under("{veto: 0.1}")
            .as_if(&[|options| Options { veto: None, ..options }]),
        Fault::new("veto-per-token", "the unlikely token goes, and its row stays")
            .seen("mutation: no `any` over the tokens of a row")
            .under("{veto: 0.1}")
            .made_of([vetoed!(|row, v| row.gaps.iter().map(|gap| row.exp(*gap) < v).collect())]),
        Fault::new("veto-needs-every-token", "a row goes if all of its tokens are unlikely")
            .seen("mutation: `all` for `any`")
            .under("{veto: 0.1}")
            .made_of([vetoed!(|row, v| {
                vec![row.gaps.iter().all(|gap| row.exp(*gap) < v); row.gaps.len()]
            })]),
        Fault::new(
            "veto-of-the-mean",
            "a row goes if the mean, or product, of its ratios is below v",
        )
        .seen("mutation: the ratio of the row where that of a token decides")
        .under("{veto: 0.1}")
        .made_of([
            vetoed!(|row, v| vec![row.exp(row.mean(&row.gaps)) < v; row.gaps.len()]),
            vetoed!(|row, v| {
                vec![row.exp(row.sum(row.gaps.iter().copied())) < v; row.gaps.len()]
            }),
        ]),
        Fault::new(
            "veto-reversed",
            "a row goes for a token whose ratio is above 1 / v, or above v",
        )
        .seen("mutation: sampler over policy, or a comparison the wrong way round")
        .under("{veto: 0.1}")
        .made_of([
            vetoed!(|row, v| {
                vec![row.gaps.iter().any(|gap| row.exp(-gap) < v); row.gaps.len()]
            }),
            vetoed!(|row, v| {
                vec![row.gaps.iter().any(|gap| row.exp(*gap) > v); row.gaps.len()]
            }),
        ]),
        Fault::new(
            "veto-of-the-probability",
            "a row goes for a token whose own probability is below v, not its ratio",
        )
        .seen("mutation: log_probs, or the sampler's, where their difference is meant")
        .under("{veto: 0.1}")
        .made_of([
            without_rows(|case, at, v| case.log_probs[at].exp() < v),
            without_rows(|case, at, v| case.sampler_log_probs[at].exp() < v),
        ]),
        Fault::new(
            "veto-of-the-log-ratio",
            "v is compared with the log-ratio: half of all rows go",
        )
        .seen("mutation: a logarithm forgotten")
        .under("{veto: 0.1}")
        .made_of([vetoed!(|row, v| { vec![row.gaps.iter().any(|gap| *gap < v); row.gaps.len()] })]),
        Fault::new("veto-on-both-sides", "a row also goes for a token whose ratio is above 1 / v")
            .seen("mutation: |d| for d")
            .under("{veto: 0.1}")
            .made_of([vetoed!(|row, v| {
                vec![row.gaps.iter().any(|gap| row.exp(-gap.abs()) < v); row.gaps.len()]
            })]),
        Fault::new(
            "veto-of-the-first-token",
            "only the first token of a row, or the last, has a veto",
        )
        .seen("mutation: an index where `any` belongs")
        .under("{veto: 0.1}")
        .made_of([
            vetoed!(|row, v| vec![row.exp(row.gaps[0]) < v; row.gaps.len()]),
            vetoed!(|row, v| vec![row.exp(row.gaps[row.gaps.len() - 1]) < v; row.gaps.len()]),
        ]),
        Fault::new("veto-of-the-batch", "one unlikely token takes every row along")
            .seen("mutation: `any` without its axis")
            .under("{veto: 0.1}")
            .made_of([after(|output, case, options, dtype| {
                let any = rows(case, dtype)
                    .iter()
                    .any(|row| reference::vetoed(row, options).contains(&true));
                if any {
                    output.keep.iter_mut().for_each(|keep| keep.fill(0.0));
                    output.weights.fill(0.0);
                    output.clip_fraction = Some(arr0(1.0));
                }
            })]),
    ]
}

/// The drift of a row.
fn drift() -> Vec<Fault> {
    vec![
        Fault::new("drift-ignored", "no row goes for its drift")
            .seen("mutation: an option without effect")
            .under("{drift: 0.25}")
            .made_of([steps(|s| s.drifted = |row, _| vec![false; row.gaps.len()])]),
        Fault::new("drift-per-token", "a row's drift is decided token by token")
            .seen("slime #1917")
            .under("{drift: 0.25}")
            .made_of([drifted!(|row, advantage, limit| {
                row.gaps.iter().map(|gap| advantage < 0.0 && -gap > limit).collect()
            })]),
        Fault::new("drift-of-any-advantage", "rows go for their drift whatever their advantage")
            .seen("mutation: one of two conditions forgotten")
            .under("{drift: 0.25}")
            .made_of([row_drifted!(|row, _, limit| -row.mean(&row.gaps) > limit)]),
        Fault::new("drift-or-advantage", "rows go for their drift, and for a negative advantage")
            .seen("mutation: `or` for `and`")
            .under("{drift: 0.25}")
            .made_of([row_drifted!(|row, advantage, limit| {
                advantage < 0.0 || -row.mean(&row.gaps) > limit
            })]),
        Fault::new("drift-of-positive-advantages", "rows of positive advantage go for their drift")
            .seen("mutation: a comparison the wrong way round")
            .under("{drift: 0.25}")
            .made_of([row_drifted!(|row, advantage, limit| {
                advantage > 0.0 && -row.mean(&row.gaps) > limit
            })]),
        Fault::new("drift-of-advantage-zero", "rows of advantage 0 go for their drift too")
            .seen("mutation: ≤ for <")
            .under("{drift: 0.25}")
            .made_of([row_drifted!(|row, advantage, limit| {
                advantage <= 0.0 && -row.mean(&row.gaps) > limit
            })]),
        Fault::new(
            "drift-reversed",
            "policy less sampler, for sampler less policy, is compared with δ",
        )
        .seen("mutation: the sign of a KL that is estimated from the sampler's tokens")
        .under("{drift: 0.25}")
        .made_of([row_drifted!(|row, advantage, limit| {
            advantage < 0.0 && row.mean(&row.gaps) > limit
        })]),
        Fault::new("drift-in-both-directions", "the magnitude of the drift is compared with δ")
            .seen("mutation: a distance where a signed mean decides")
            .under("{drift: 0.25}")
            .made_of([row_drifted!(|row, advantage, limit| {
                advantage < 0.0 && row.mean(&row.gaps).abs() > limit
            })]),
        Fault::new("drift-of-the-sum", "the sum over a row, not its mean, is compared with δ")
            .seen("mutation: a longer row drifts more")
            .under("{drift: 0.75}")
            .made_of([row_drifted!(|row, advantage, limit| {
                advantage < 0.0 && -row.sum(row.gaps.iter().copied()) > limit
            })]),
        Fault::new(
            "drift-divides-by-the-width",
            "the drift is a mean over T, masked tokens included",
        )
        .seen("mutation: `.mean(-1)` of masked log-ratios")
        .under("{drift: 0.75}")
        .made_of([row_drifted!(|row, advantage, limit| {
            advantage < 0.0 && -row.sum(row.gaps.iter().copied()) / row.width as f64 > limit
        })]),
        Fault::new("drift-of-squares", "half the mean square, or k3, is compared with δ")
            .seen("mutation: the k2 or k3 estimate for the k1 estimate")
            .under("{drift: 0.25}")
            .made_of([
                row_drifted!(|row, advantage, limit| {
                    let squares: Vec<f64> = row.gaps.iter().map(|gap| 0.5 * gap * gap).collect();
                    advantage < 0.0 && row.mean(&squares) > limit
                }),
                row_drifted!(|row, advantage, limit| {
                    let k3: Vec<f64> = row.gaps.iter().map(|gap| gap.exp_m1() - gap).collect();
                    advantage < 0.0 && row.mean(&k3) > limit
                }),
            ]),
        Fault::new("drift-of-the-clamped-gaps", "the drift is that of log-ratios clamped to ±c")
            .seen("mutation: the clamped log-ratios are reused")
            .under("{drift: 0.8, log_ratio_clamp: 0.7}")
            .made_of([steps(|s| {
                s.drifted = |row, options| {
                    let c = options.log_ratio_clamp.unwrap_or(f64::INFINITY);
                    let gaps: Vec<f64> = row.gaps.iter().map(|gap| gap.clamp(-c, c)).collect();
                    let limit = options.drift.unwrap_or(f64::INFINITY);
                    let gone = row.advantage.is_some_and(|a| a < 0.0) && -row.mean(&gaps) > limit;
                    vec![gone; row.gaps.len()]
                };
            })]),
        Fault::new("drift-within-the-limit", "rows that have not drifted go, those that have stay")
            .seen("mutation: a comparison the wrong way round")
            .under("{drift: 0.25}")
            .made_of([row_drifted!(|row, advantage, limit| {
                advantage < 0.0 && -row.mean(&row.gaps) <= limit
            })]),
        Fault::new(
            "advantages-of-the-next-row",
            "the advantages are in another order than the rows",
        )
        .seen("verl #1943, #1440: left in the order by length")
        .under("{drift: 0.25}")
        .on(&[|case, _| {
            if let Some(advantages) = &mut case.advantages {
                let count = advantages.len();
                *advantages = (0..count).map(|row| advantages[(row + 1) % count]).collect();
            }
        }]),
    ]
}

/// The weight of what is dropped, and what `keep` tells.
fn rejected() -> Vec<Fault> {
    vec![
        Fault::new("dropped-keeps-its-weight", "what is dropped weighs as much as if it were kept")
            .seen("mutation: only `keep` knows, and nobody multiplies by it")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .as_if(&[|options| Options { rejected: Rejected::Unchanged, ..options }]),
        Fault::new(
            "dropped-weighs-nothing",
            "what is dropped weighs 0 where it is to keep its weight",
        )
        .seen("mutation: trl's convention where verl's is declared")
        .under("{select: token, select_low: 0.5, select_high: 2.5, rejected: unchanged}")
        .as_if(&[|options| Options { rejected: Rejected::Zero, ..options }]),
        Fault::new(
            "dropped-weighs-one",
            "what is dropped weighs 1: it is trained without correction",
        )
        .seen("mutation: a `where` with ones for zeros")
        .under("{select: token, select_low: 0.5, select_high: 2.5}")
        .made_of([steps(|s| s.dropped = |_, _| 1.0)]),
        Fault::new(
            "keep-knows-only-the-bounds",
            "`keep` leaves out what a veto or the drift drops",
        )
        .seen("mutation: the mask is returned before its last two conditions")
        .under("{veto: 0.1, drift: 0.25}")
        .made_of([after(|output, case, options, dtype| {
            let free = Options { veto: None, drift: None, ..options.clone() };
            let mut without = case.clone();
            without.advantages = None;
            output.keep = reference::weights(&without, &free, dtype).keep;
        })]),
        Fault::new("keep-is-the-mask", "`keep` is the mask, whatever is dropped")
            .seen("mutation: the mask is returned, not the one that was made of it")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .made_of([after(|output, case, _, _| output.keep = Some(case.mask.mapv(f64::from)))]),
        Fault::new("keep-is-the-weight", "the weights are returned for `keep`")
            .seen("mutation: the product of mask and weight in the place of the mask")
            .made_of([after(|output, _, _, _| output.keep = Some(output.weights.clone()))]),
        Fault::new("keep-is-inverted", "`keep` is true for what is dropped")
            .seen("mutation: a rejection mask returned as the mask of what is kept")
            .made_of([after(|output, case, _, _| {
                if let Some(keep) = &mut output.keep {
                    let masked = case.mask.mapv(f64::from);
                    keep.zip_mut_with(&masked, |keep, mask| *keep = mask * (1.0 - *keep));
                }
            })]),
        Fault::new("keep-leaves-out-the-clamped", "`keep` is false for what is clamped")
            .seen("mutation: clip fraction and rejection from one condition")
            .made_of([after(|output, case, options, dtype| {
                let Some(keep) = &mut output.keep else { return };
                for (index, row) in rows(case, dtype).iter().enumerate() {
                    let ratios = reference::ratios(row, options.level, options);
                    for (column, ratio) in row.columns.iter().zip(ratios) {
                        if reference::clamped(row, ratio, options) != ratio {
                            keep[[index, *column]] = 0.0;
                        }
                    }
                }
            })]),
    ]
}

/// Rows dropped, weights and all, for one token of which something is true.
fn without_rows(of: fn(&ImportanceWeightsCase, (usize, usize), f64) -> bool) -> Variant {
    Variant::gives(move |case: &ImportanceWeightsCase, options: &Options, dtype| {
        let free = Options { veto: None, ..options.clone() };
        let mut output = reference::weights(case, &free, dtype);
        let Some(v) = options.veto else { return output };
        let (mut kept, mut dropped) = (case.clone(), 0.0);
        for (index, row) in rows(case, dtype).iter().enumerate() {
            if row.columns.iter().any(|column| of(case, (index, *column), v)) {
                kept.mask.row_mut(index).fill(false);
                dropped += row.columns.len() as f64;
            }
        }
        let rest = reference::weights(&kept, &free, dtype);
        if options.rejected == Rejected::Zero {
            output.weights = rest.weights;
        }
        output.keep = rest.keep;
        let share = rest.clip_fraction.map_or(0.0, |share| share[()]);
        let count = count(case);
        if count > 0.0 {
            output.clip_fraction = Some(arr0((share * (count - dropped) + dropped) / count));
        }
        output
    })
}

/// Whether a number is outside the bounds.
fn is_outside(ratio: f64, options: &Options) -> bool {
    options.select != Select::None
        && (options.select_low.is_some_and(|low| ratio < low)
            || options.select_high.is_some_and(|high| ratio > high))
}
