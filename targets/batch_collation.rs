//! `batch-collation` on tensors: prompts and completions as one batch.

use shakedown::author::Component;
use shakedown::contracts::batch_collation as contract;
use shakedown::contracts::batch_collation::{
    BatchCollationOutput, Layout, Options, Shift, TrainOn, Truncate,
};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::BatchCollation> {
    tch::<contract::BatchCollation>(move |case| {
        let prompts = rows(&case.prompts, &case.prompt_lengths);
        let completions = rows(&case.completions, &case.completion_lengths);
        let batch = collate(&prompts, &completions, &options);
        let whole = |numbers: Tensor| Some(numbers.to_kind(Kind::Double));
        BatchCollationOutput {
            input_ids: whole(batch.input_ids),
            attention_mask: whole(batch.attention_mask),
            completion_mask: whole(batch.completion_mask),
            labels: whole(batch.labels),
            position_ids: whole(batch.position_ids),
        }
    })
}

/// The tokens of each row of a padded matrix.
fn rows(padded: &Tensor, lengths: &Tensor) -> Vec<Tensor> {
    let rows = 0..padded.size()[0];
    rows.map(|row| padded.get(row).narrow(0, 0, lengths.int64_value(&[row]))).collect()
}

/// A batch, `[N, L]` each.
#[derive(Debug)]
pub struct Batch {
    /// The ids, and the pad beside them.
    pub input_ids: Tensor,
    /// True where a token stands.
    pub attention_mask: Tensor,
    /// True where a token of the completion stands.
    pub completion_mask: Tensor,
    /// The ids of the trained tokens, and `ignore`.
    pub labels: Tensor,
    /// The number of each token in its row; 0 in padding.
    pub position_ids: Tensor,
}

/// Prompts and completions as one batch.
///
/// Each row is cut before it is filled up, and its mask is cut with it: the other order leaves
/// padding of short rows, and a boundary that is found afterwards is the wrong one.
///
/// # Shapes
/// `N` prompts and completions, `[p]` and `[c]`, of lengths of their own; the result as [`Batch`].
///
/// # Units
/// Ids and positions are integers.
///
/// # Errors
/// Panics without a row, and with `truncate: refuse` for one above `max_length`.
///
/// # Source
/// TRL `DataCollatorForPreference`; verl for two sides.
pub fn collate(prompts: &[Tensor], completions: &[Tensor], options: &Options) -> Batch {
    let longest = |of: &[Tensor]| of.iter().map(|ids| ids.size()[0]).max().unwrap_or(0);
    let prompt_width = longest(prompts);
    let mut ids = Vec::new();
    let mut masks = Vec::new();
    let mut before = Vec::new();
    for (prompt, completion) in prompts.iter().zip(completions) {
        let row = Tensor::cat(&[prompt, completion], 0);
        let mask = Tensor::cat(&[prompt.zeros_like(), completion.ones_like()], 0);
        let [row, mask] = [row, mask].map(|list| cut(&list, options));
        before.push(prompt_width - prompt.size()[0]);
        ids.push(row);
        masks.push(mask);
    }
    let mut width = longest(&ids);
    if options.layout == Layout::Split {
        width = prompt_width + longest(completions);
    }
    let multiple = options.multiple_of.unwrap_or(1);
    width = (width + multiple - 1) / multiple * multiple;
    let filled = |lists: &[Tensor], value: i64| {
        let filled: Vec<Tensor> = lists
            .iter()
            .zip(&before)
            .map(|(list, before)| {
                let more = width - list.size()[0];
                let left = match options.layout {
                    Layout::Right => 0,
                    Layout::Left => more,
                    Layout::Split => *before,
                };
                let row = Tensor::full([width], value, (Kind::Int64, list.device()));
                row.narrow(0, left, list.size()[0]).copy_(list);
                row
            })
            .collect();
        Tensor::stack(&filled, 0)
    };
    let ones: Vec<Tensor> = ids.iter().map(Tensor::ones_like).collect();
    let input_ids = filled(&ids, options.pad);
    let attention_mask = filled(&ones, 0).to_kind(Kind::Bool);
    let completion_mask = filled(&masks, 0).to_kind(Kind::Bool);
    let trained = match options.train_on {
        TrainOn::Completion => &completion_mask,
        TrainOn::All => &attention_mask,
    };
    let ignore = input_ids.full_like(options.ignore);
    let mut labels = input_ids.where_self(trained, &ignore);
    if options.shift == Shift::Next {
        let next = labels.narrow(1, 1, width - 1);
        labels = Tensor::cat(&[next, ignore.narrow(1, 0, 1)], 1);
    }
    let counted = attention_mask.cumsum(1, Kind::Int64) - 1;
    let position_ids = counted * attention_mask.to_kind(Kind::Int64);
    Batch { input_ids, attention_mask, completion_mask, labels, position_ids }
}

/// What `max_length` leaves of a row.
fn cut(list: &Tensor, options: &Options) -> Tensor {
    let length = list.size()[0];
    let kept = options.max_length.map_or(length, |most| length.min(most));
    match options.truncate {
        Truncate::KeepStart => list.narrow(0, 0, kept),
        Truncate::KeepEnd => list.narrow(0, length - kept, kept),
        Truncate::Refuse => {
            assert!(kept == length, "a row has {length} tokens, at most {kept} are allowed");
            list.shallow_clone()
        }
    }
}
