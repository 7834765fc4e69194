//! The reference implementation of `turn-mask`, as a trainer would write it: ids and mask grow
//! together, turn by turn.

use ndarray::Array1;

use super::{ASSISTANT, Options, SYSTEM, Shift, Train, TurnMaskCase, TurnMaskOutput};

/// The rendered conversation, its mask and its labels.
pub(super) fn render(case: &TurnMaskCase, options: &Options) -> TurnMaskOutput {
    let mut ids = options.bos.clone();
    let mut mask = vec![false; ids.len()];
    let mut push = |of: &[i64], trained: bool| {
        ids.extend(of);
        mask.extend(of.iter().map(|_| trained));
    };
    let count = case.turns.len();
    let mut answers_ahead = case.turns.iter().filter(|turn| turn.role[()] == ASSISTANT).count();
    for (at, turn) in case.turns.iter().enumerate() {
        let role = turn.role[()];
        answers_ahead -= usize::from(role == ASSISTANT);
        let trained = match options.train {
            Train::Assistant => role == ASSISTANT,
            Train::LastAssistant => role == ASSISTANT && answers_ahead == 0,
            Train::Last => at + 1 == count,
            Train::All => role != SYSTEM,
        };
        push(&options.start, trained && options.train_header);
        if let Some(id) = options.role_ids.get(role as usize) {
            push(&[*id], trained && options.train_header);
        }
        push(&turn.tokens.to_vec(), trained);
        push(&options.end, trained && options.train_end);
    }
    if let Some(most) = options.max_length {
        ids.truncate(most as usize);
        mask.truncate(most as usize);
    }
    output(&ids, &mask, options)
}

/// The outputs of a text and its mask, which is as long.
pub(super) fn output(ids: &[i64], mask: &[bool], options: &Options) -> TurnMaskOutput {
    let labels: Vec<i64> =
        ids.iter().zip(mask).map(|(id, kept)| if *kept { *id } else { options.ignore }).collect();
    let from = usize::from(options.shift == Shift::Next);
    TurnMaskOutput {
        tokens: Some(ids.iter().map(|id| *id as f64).collect()),
        mask: Some(mask.iter().skip(from).map(|kept| f64::from(*kept)).collect()),
        labels: Some(Array1::from_iter(labels.iter().skip(from).map(|id| *id as f64))),
    }
}
