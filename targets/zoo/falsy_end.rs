//! transformers #47325: the end of an answer is an index, and the index 0 is false: an answer of
//! one token at the start goes on to the end of the conversation.

use shakedown::contracts::turn_mask::{Options, TurnMask, TurnMaskCase, TurnMaskOutput};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "transformers #47325, #47326",
    place: Place::CPU_F32,
    found_by: &["oracle", "trained-roles"],
    fault: "end-at-zero-is-falsy",
    check: |bug, budget| {
        let none = Vec::new;
        let (bos, start, end, role_ids) = (none(), none(), none(), none());
        let options = Options { bos, start, end, role_ids, ..Options::default() };
        bug.check_on::<TurnMask>(answer, options, budget)
    },
};

fn answer(case: &TurnMaskCase<Tensors>) -> TurnMaskOutput<Tensors> {
    let tokens: Vec<&Tensor> = case.turns.iter().map(|turn| &turn.tokens).collect();
    let tokens = Tensor::cat(&tokens, 0).to_kind(Kind::Double);
    let length = tokens.size()[0];
    let mask = tokens.zeros_like();
    let mut begin = 0;
    for turn in &case.turns {
        let count = turn.tokens.size()[0];
        if turn.role.int64_value(&[]) == 2 && count > 0 {
            let last = begin + count - 1;
            // Mended: last + 1, whatever `last` is
            let end = if last != 0 { last + 1 } else { length };
            let _ = mask.narrow(0, begin, end - begin).fill_(1.0);
        }
        begin += count;
    }
    TurnMaskOutput { tokens: Some(tokens), mask: Some(mask), labels: None }
}
