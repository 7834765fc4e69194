//! `whiten` on tensors: mean 0 and variance 1, over all tokens that count or row by row.

use shakedown::author::Component;
use shakedown::author::RowInfluence;
use shakedown::author::conventions::EmptyMask;
use shakedown::contracts::group_advantage::EpsilonMode;
use shakedown::contracts::whiten::{Options, Whiten};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::masked::under;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<Whiten> {
    tch::<Whiten>(move |case| whiten(&case.values, &case.mask, &options))
}

/// The numbers less their mean, over their deviation; with `shift_mean: false` around their mean.
///
/// Numbers that are all equal give exactly 0: they are taken relative to one of them before they
/// are averaged, so nothing is left of a rounded mean.
///
/// # Shapes
/// `N` rows of `T` tokens: values and mask `[N, T]`, the result `[N, T]`, 0 where masked.
///
/// # Units
/// Deviations. Half formats are answered in f32.
///
/// # Errors
/// Panics with `empty_mask: refuse` where fewer than `ddof + 1` tokens count.
///
/// # Source
/// verl and TRL `masked_whiten` (`add`); OpenRLHF `masked_normalize` (`clamp`).
pub fn whiten(values: &Tensor, mask: &Tensor, options: &Options) -> Tensor {
    match options.rows {
        RowInfluence::Batch => whiten_together(values, mask, options),
        RowInfluence::Independent => {
            let rows = values.split(1, 0).into_iter().zip(mask.split(1, 0));
            let whitened = rows.map(|(values, mask)| whiten_together(&values, &mask, options));
            Tensor::cat(&whitened.collect::<Vec<_>>(), 0)
        }
    }
}

/// Over all tokens that count.
fn whiten_together(values: &Tensor, mask: &Tensor, options: &Options) -> Tensor {
    let values = under(mask, &values.to_kind(arithmetic(values.kind())));
    let count = mask.sum(values.kind());
    let enough = count.gt(f64::from(options.ddof));
    if options.empty_mask == EmptyMask::Refuse {
        assert!(enough.int64_value(&[]) == 1, "too few tokens for a deviation");
    }

    let origin = values.take(&mask.to_kind(Kind::Int8).argmax(None, false));
    let distance = under(mask, &(&values - &origin));
    let mean = distance.sum(None) / count.clamp_min(1.0);
    let centred = under(mask, &(distance - &mean));
    let degrees = (count - f64::from(options.ddof)).clamp_min(1.0);
    let variance = centred.square().sum(None) / degrees;
    let protected = match options.epsilon_mode {
        EpsilonMode::Add => variance + options.epsilon,
        EpsilonMode::Clamp => variance.clamp_min(options.epsilon),
    };
    let whitened = &centred / protected.sqrt();
    let whitened = whitened.where_self(&centred.ne(0.0), &centred); // 0/0 where epsilon is 0

    let (whitened, too_few) = if options.shift_mean {
        let zeros = whitened.zeros_like();
        (whitened, zeros)
    } else {
        (whitened + origin + mean, values)
    };
    let too_few = match options.empty_mask {
        EmptyMask::Nan => too_few.full_like(f64::NAN),
        EmptyMask::Zero | EmptyMask::Refuse | EmptyMask::Avoid => too_few,
    };
    under(mask, &whitened.where_self(&enough, &too_few))
}
