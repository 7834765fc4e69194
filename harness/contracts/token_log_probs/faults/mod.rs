//! Known wrong behaviours of `token-log-probs`: real bugs, and conventions mistaken for others.

mod behaviour;
mod formula;
mod gradient;
mod normaliser;
mod position;

use super::TokenLogProbs;

type Fault = shakedown_core::contract::fault::Fault<TokenLogProbs>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    // A diagnosis breaks ties by this order, for which files come back in it.
    let themes = [
        formula::temperature(),
        position::shift(),
        position::tokens(),
        position::kept(),
        gradient::all(),
        formula::formula(),
        formula::guards(),
        formula::overflow(),
        normaliser::all(),
        position::places(),
        formula::infinite(),
    ];
    themes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arbitrary::Unstructured;
    use rand_core::Rng as _;

    use super::*;
    use crate::token_log_probs::{Options, TokenLogProbsCase, TokenLogProbsOutput, columns};
    use shakedown_core::contract::erased;
    use shakedown_core::contract::options::{AnyOptions, Options as _};
    use shakedown_core::contract::stream;
    use shakedown_core::value::place::Dtype;

    /// Diagnosis tries every fault under the options of the component, whatever they are.
    #[test]
    fn every_fault_answers_every_case_under_all_options() {
        let contract = erased::of::<TokenLogProbs>();
        let mut rng = stream::rng(1, "faults");
        for round in 0..60 {
            let mut bytes = [0; 64];
            rng.fill_bytes(&mut bytes);
            let options = Options::draw(&mut Unstructured::new(&bytes)).unwrap();
            let any: Arc<dyn AnyOptions> = Arc::new(options.clone());
            let dtype = Dtype::ALL[round % 4].0;
            for (_, case) in stream::cases(contract, Vec::new(), 2, &any, dtype).take(240) {
                let typed: &TokenLogProbsCase = case.typed();
                let shape = (typed.tokens.nrows(), columns(typed, &options));
                for fault in contract.faults() {
                    for variant in fault.variants() {
                        let output = variant.output(&*case, &*any, dtype);
                        let output: &TokenLogProbsOutput = output.typed();
                        assert_eq!(output.log_probs.dim(), shape, "{}", fault.id);
                        if let Some(gradient) = &output.grad_logits {
                            assert_eq!(gradient.dim(), typed.logits.dim(), "{}", fault.id);
                        }
                    }
                }
            }
        }
    }
}
