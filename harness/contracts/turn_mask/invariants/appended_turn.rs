//! What is said later changes no flag of what was said before.
//!
//! ### Claim
//! One more turn at the end changes neither tokens nor flags before it.
//!
//! ### Why it matters
//! Conversations grow turn by turn, and rollouts with tools are put together as they go on. What
//! was trained of the beginning stays what it was.
//!
//! ### Does not hold for
//! `train: last` and `last-assistant`, which a later turn takes over.
//!
//! ### Bugs it has caught
//! slime 882433bb9: the answer is the last message, and no longer one when another follows.
//!
//! ### Example
//! ```diff
//! -        trained = role == ASSISTANT and turn is turns[-1]
//! +        trained = role == ASSISTANT
//! ```

use ndarray::s;

use crate::turn_mask::generate::words;
use crate::turn_mask::{Train, Turn, TurnMask};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &["first-and-last-only", "only-the-last-answer", "last-tokens-kept"],
    check,
)
.under(|options| matches!(options.train, Train::Assistant | Train::All));

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    let before = probe.finite_output()?;
    let mut longer = probe.case.clone();
    let word = words(probe.options).next().expect("there are many words");
    let role = probe.pick.below(4) as i64;
    longer.turns.push(Turn::of(role, &[word, word + 1][..1 + probe.pick.below(2)]));
    let after = probe.call(&longer)?;
    let fields = [
        ("tokens", &before.output.tokens, &after.tokens),
        ("mask", &before.output.mask, &after.mask),
    ];
    for (name, before, after) in fields {
        let (Some(before), Some(after)) = (before, after) else { continue };
        if after.len() < before.len() {
            let (before, after) = (before.len(), after.len());
            broken!("with a turn of role {role} more, `{name}` has {after} entries, not {before}");
        }
        let kept = after.slice(s![..before.len()]);
        if kept != before {
            broken!(
                "with a turn of role {role} more, {name} begins {kept}, before it was {before}"
            );
        }
    }
    Ok(())
}
