//! `entropy-bonus` on tensors: how undecided the policy is, as a term of its loss.

use shakedown::author::Component;
use shakedown::contracts::entropy_bonus as contract;
use shakedown::contracts::entropy_bonus::{EntropyBonusOutput, NegInf, Options};
use shakedown::contracts::token_entropy;
use shakedown_tch::tch;
use tch::Tensor;

use crate::entropy;
use crate::masked::Reduction;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::EntropyBonus> {
    tch::<contract::EntropyBonus>(move |case| {
        let EntropyBonus { loss, entropy } = entropy_bonus(&case.logits, &case.mask, &options);
        EntropyBonusOutput { loss: Some(loss), entropy: Some(entropy), grad_logits: None }
    })
}

/// What [`entropy_bonus()`] gives: two scalars.
#[derive(Debug)]
pub struct EntropyBonus {
    /// To be added to what is minimised.
    pub loss: Tensor,
    /// To be looked at: not scaled.
    pub entropy: Tensor,
}

/// The aggregated entropy of the tokens that count, and the bonus that it is; differentiable.
///
/// # Shapes
/// `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, mask `[N, T]`; the results
/// are scalars.
///
/// # Units
/// Nats. Half formats are answered in f32.
///
/// # Errors
/// Panics without a token where `empty_mask: refuse` is declared, and where `norm_length` is
/// missing.
///
/// # Source
/// verl `compute_entropy_loss`; TRL `get_high_entropy_mask` for `top_share`.
pub fn entropy_bonus(logits: &Tensor, mask: &Tensor, options: &Options) -> EntropyBonus {
    // Before any arithmetic, so that NaN under the mask has no derivative either.
    let logits = logits.where_self(&mask.unsqueeze(-1), &logits.zeros_like());
    let of_tokens = token_entropy::Options {
        temperature: options.temperature,
        neg_inf: match options.neg_inf {
            NegInf::Zero => token_entropy::NegInf::Zero,
            NegInf::Avoid => token_entropy::NegInf::Avoid,
        },
        ..token_entropy::Options::default()
    };
    let entropies = entropy::token_entropy(&logits, &of_tokens);
    let chosen = chosen(&entropies.detach(), mask, options.top_share);
    let reduction = Reduction {
        aggregate: options.aggregate,
        norm_length: options.norm_length,
        empty_rows: options.empty_rows,
        empty_mask: options.empty_mask,
    };
    let entropy = reduction.of(&entropies, &chosen);
    EntropyBonus { loss: &entropy * -options.coefficient, entropy }
}

/// The tokens under the mask, or those of them whose entropy is in the top share.
fn chosen(entropies: &Tensor, mask: &Tensor, top_share: Option<f64>) -> Tensor {
    let counted = entropies.masked_select(mask);
    match top_share {
        Some(share) if counted.numel() > 0 => {
            let least = counted.quantile_scalar(1.0 - share, 0, false, "linear");
            mask.logical_and(&entropies.ge_tensor(&least))
        }
        _ => mask.shallow_clone(),
    }
}
