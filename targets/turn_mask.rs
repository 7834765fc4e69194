//! `turn-mask` on tensors: a conversation as ids, and which of them are trained.

use shakedown::author::Component;
use shakedown::contracts::turn_mask as contract;
use shakedown::contracts::turn_mask::{Options, Shift, Train, TurnMaskOutput};
use shakedown_tch::tch;
use tch::{Device, Kind, Tensor};

/// The role of the system's turns.
const SYSTEM: i64 = 0;

/// The role of the assistant's.
const ASSISTANT: i64 = 2;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::TurnMask> {
    tch::<contract::TurnMask>(move |case| {
        let turns = case.turns.iter().map(|turn| (turn.role.int64_value(&[]), &turn.tokens));
        let (tokens, mask) = render(&turns.collect::<Vec<_>>(), &options);
        let labels = tokens.where_self(&mask, &tokens.full_like(options.ignore));
        let spoken_of = |list: &Tensor| match options.shift {
            Shift::None => list.to_kind(Kind::Double),
            Shift::Next => list.narrow(0, 1, list.size()[0] - 1).to_kind(Kind::Double),
        };
        TurnMaskOutput {
            mask: Some(spoken_of(&mask)),
            labels: Some(spoken_of(&labels)),
            tokens: Some(tokens.to_kind(Kind::Double)),
        }
    })
}

/// The ids of a conversation, and which of them are trained.
///
/// Ids and mask are made together, so that nothing has to be found again in the text.
///
/// # Shapes
/// Of each turn its role and its ids, `[n]`; the result is `[T]` twice, integers and booleans.
///
/// # Units
/// Tokens.
///
/// # Errors
/// Panics where there is no token at all.
///
/// # Source
/// NeMo-RL `add_loss_mask_to_message_log`; slime `MultiTurnLossMaskGenerator`.
pub fn render(turns: &[(i64, &Tensor)], options: &Options) -> (Tensor, Tensor) {
    let answers = turns.iter().rposition(|(role, _)| *role == ASSISTANT);
    let device = turns.first().map_or(Device::Cpu, |(_, tokens)| tokens.device());
    let fixed = |ids: &[i64]| Tensor::from_slice(ids).to_device(device);
    let mut parts: Vec<(Tensor, bool)> = vec![(fixed(&options.bos), false)];
    for (at, (role, tokens)) in turns.iter().enumerate() {
        let trained = match options.train {
            Train::Assistant => *role == ASSISTANT,
            Train::LastAssistant => answers == Some(at),
            Train::Last => at + 1 == turns.len(),
            Train::All => *role != SYSTEM,
        };
        let mut header = options.start.clone();
        header.extend(options.role_ids.get(*role as usize));
        parts.push((fixed(&header), trained && options.train_header));
        parts.push((tokens.shallow_clone(), trained));
        parts.push((fixed(&options.end), trained && options.train_end));
    }
    let ids: Vec<&Tensor> = parts.iter().map(|(ids, _)| ids).collect();
    let masks: Vec<Tensor> = parts
        .iter()
        .map(|(ids, trained)| ids.full_like(i64::from(*trained)).to_kind(Kind::Bool))
        .collect();
    let (ids, mask) = (Tensor::cat(&ids, 0), Tensor::cat(&masks, 0));
    let left = options.max_length.map_or(ids.size()[0], |most| ids.size()[0].min(most));
    (ids.narrow(0, 0, left), mask.narrow(0, 0, left))
}
