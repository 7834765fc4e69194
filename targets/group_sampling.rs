//! `group-sampling` on tensors: which prompt comes when, and how many copies of it.

use shakedown::author::Component;
use shakedown::contracts::group_sampling::{GroupSampling, Layout, Options};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

use crate::chance::Chance;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<GroupSampling> {
    tch::<GroupSampling>(move |case| {
        group_sampling(&case.prompts, case.seed.int64_value(&[]), &options)
    })
}

/// The prompt of each row to come.
///
/// # Shapes
/// `B` prompts: `[B]`, integers; the result `[M]`, with `M` as many as prompts that are not dropped
/// times their copies.
///
/// # Errors
/// None. Fewer prompts than a batch give nothing, unless `drop_last: false`.
///
/// # Source
/// TRL `RepeatSampler`; verl `DataProto.repeat` for the layouts.
pub fn group_sampling(prompts: &Tensor, seed: i64, options: &Options) -> Tensor {
    let order = if options.shuffle { shuffled(prompts, seed) } else { prompts.shallow_clone() };
    let count = order.numel() as i64;
    let size = options.prompts_per_batch.unwrap_or(count);
    let (full, rest) = (count / size, count % size);
    let mut rows = vec![copied(&order.narrow(0, 0, full * size).view([full, size]), options)];
    if rest > 0 && !options.drop_last {
        rows.push(copied(&order.narrow(0, full * size, rest).view([1, rest]), options));
    }
    Tensor::cat(&rows, 0)
}

/// All rows of some batches, each as often as it comes.
fn copied(batches: &Tensor, options: &Options) -> Tensor {
    let copies = match options.layout {
        Layout::Interleave => batches.repeat_interleave_self_int(options.group_size, 1, None),
        Layout::Tile => batches.repeat([1, options.group_size]),
    };
    copies.repeat([1, options.repeats]).flatten(0, -1)
}

/// The prompts drawn one after the other, none of them twice.
fn shuffled(prompts: &Tensor, seed: i64) -> Tensor {
    let mut chance = Chance::new(seed);
    let mut left = Tensor::ones([prompts.numel() as i64], (Kind::Double, prompts.device()));
    let drawn: Vec<Tensor> = (0..prompts.numel())
        .map(|_| {
            let index = chance.draw(&left, 1);
            let _ = left.index_fill_(0, &index, 0.0);
            index
        })
        .collect();
    prompts.index_select(0, &Tensor::cat(&drawn, 0))
}
