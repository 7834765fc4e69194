//! Faults of the whitening at the end.

use ndarray::Array1;

use super::super::{Final, Options, RewardCombinationCase};
use super::{Fault, deviation, has_score, is_constant, mean, members, right, with};
use shakedown_core::value::place::Dtype;

/// Other whitenings than the declared one.
pub(super) fn whitening() -> Vec<Fault> {
    vec![
        Fault::new("not-whitened", "the sums stay as they are where whitening is declared")
            .seen("an option without effect")
            .under("{final: add}")
            .as_if(&[|options| Options { r#final: Final::None, ..options }]),
        Fault::new("whitened", "the sums are whitened where nobody asked for it")
            .seen("verl REINFORCE++-baseline and GDPO whiten, TRL `sum_then_normalize` does not")
            .as_if(&[|options| Options { r#final: Final::Add, ..options }]),
        Fault::new("final-root-for-sum", "√(σ² + ε) for σ + ε at the end")
            .seen("verl's convention where TRL's is declared")
            .under("{final: add, final_epsilon: 0.01}")
            .as_if(&[|options| Options { r#final: Final::Root, ..options }]),
        Fault::new("final-sum-for-root", "σ + ε for √(σ² + ε) at the end")
            .seen("TRL's convention where verl's is declared")
            .under("{final: root, final_epsilon: 0.01}")
            .as_if(&[|options| Options { r#final: Final::Add, ..options }]),
        Fault::new("final-biased-deviation", "ddof 0 where 1 is declared, at the end")
            .seen("verl #1527: `masked_var` with and without its correction")
            .under("{final: add}")
            .as_if(&[|options| Options { final_ddof: 0, ..options }]),
        Fault::new("final-ddof-read-from-ddof", "the deviation at the end takes the other `ddof`")
            .seen("two options of one kind, one of which is read twice")
            .under("{normalise: group, final: add, ddof: 0}")
            .as_if(&[|options| Options { final_ddof: options.ddof, ..options }]),
        Fault::new("final-epsilon-read-from-epsilon", "the whitening takes the other ε")
            .seen("two options of one kind, one of which is read twice")
            .under("{normalise: group, final: add, epsilon: 0.0001, final_epsilon: 0.1}")
            .as_if(&[|options| Options { final_epsilon: options.epsilon, ..options }]),
        Fault::new("final-not-centred", "x/(σ + ε) at the end: the mean stays")
            .seen("`whiten(shift_mean=False)`, a switch that trl and verl have")
            .under("{final: add}")
            .gives(&[|case, options, dtype| {
                let sums = sums(case, options, dtype);
                let valued = valued(case, &sums);
                let divisor = deviation(&valued, options.final_ddof) + options.final_epsilon;
                let flat = valued.len() < 2 || is_constant(&valued);
                let scaled = sums.mapv(|x| if flat { 0.0 } else { x / divisor });
                with(case, options, dtype, scaled)
            }]),
        Fault::new(
            "final-centred-only",
            "the batch's mean is taken off at the end, nothing divided",
        )
        .seen("a whitening without its second half")
        .under("{final: add}")
        .gives(&[|case, options, dtype| {
            let sums = sums(case, options, dtype);
            let middle = mean(&valued(case, &sums));
            with(case, options, dtype, super::filled(case, sums.mapv(|x| x - middle), options))
        }]),
        Fault::new("final-not-divided-safely", "no ε at the end: equal sums are 0/0")
            .seen("`(x - x.mean()) / x.std()`; compare SB3 #1028")
            .under("{final: add}")
            .gives(&[|case, options, dtype| {
                let sums = sums(case, options, dtype);
                let valued = valued(case, &sums);
                let (middle, divisor) = (mean(&valued), deviation(&valued, options.final_ddof));
                let lone = valued.len() < 2;
                let white = sums.mapv(|x| if lone { 0.0 } else { (x - middle) / divisor });
                with(case, options, dtype, super::filled(case, white, options))
            }]),
        Fault::new("final-inside-the-groups", "the sums are whitened inside each group")
            .seen("GRPO on top of GDPO: the batch is what makes groups comparable")
            .under("{final: add}")
            .gives(&[|case, options, dtype| {
                let mut sums = sums(case, options, dtype);
                for rows in members(case) {
                    let there: Vec<f64> =
                        rows.iter().map(|row| sums[*row]).filter(|x| !x.is_nan()).collect();
                    if there.is_empty() {
                        continue;
                    }
                    let flat = is_constant(&there);
                    let divisor = deviation(&there, options.final_ddof) + options.final_epsilon;
                    let middle = mean(&there);
                    for row in rows {
                        sums[row] = if flat { 0.0 } else { (sums[row] - middle) / divisor };
                    }
                }
                with(case, options, dtype, sums)
            }]),
        Fault::new("final-of-one-row-is-nan", "the deviation of a batch of one row is 0/0")
            .seen("SB3 #1028: ddof 1 over a remainder batch of one row")
            .under("{final: add}")
            .gives(&[|case, options, dtype| {
                let mut output = right(case, options, dtype);
                if valued(case, &output.combined).len() == 1 {
                    output.combined.fill(f64::NAN);
                }
                output
            }]),
    ]
}

/// The sums before the whitening.
fn sums(case: &RewardCombinationCase, options: &Options, dtype: Dtype) -> Array1<f64> {
    right(case, &Options { r#final: Final::None, ..options.clone() }, dtype).combined
}

/// Those of the rows that some function scored.
fn valued(case: &RewardCombinationCase, sums: &Array1<f64>) -> Vec<f64> {
    (0..sums.len()).filter(|row| has_score(case, *row)).map(|row| sums[row]).collect()
}
