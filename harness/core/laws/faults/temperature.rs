//! Faults of a temperature that divides the logits: ignored, multiplied, applied twice.

use crate::contract::definition::Definition;
use crate::contract::fault::Fault;

/// Options with a temperature that divides the logits.
pub trait Tempered {
    /// The temperature.
    fn temperature(&mut self) -> &mut f64;
}

/// The three faults: `temperature-not-applied` (with what is given then, and where it was seen),
/// `temperature-multiplied` and `temperature-applied-twice`.
pub fn faults<D>(summary: &'static str, seen: &'static str) -> [Fault<D>; 3]
where
    D: Definition<Options: Tempered>,
{
    [
        Fault::new("temperature-not-applied", summary)
            .seen(seen)
            .under("{temperature: 0.6}")
            .as_if(&[|options| at(options, |_| 1.0)]),
        Fault::new("temperature-multiplied", "the logits are multiplied by the temperature")
            .seen("`*` for `/`: TRL, verl and OpenRLHF divide the logits by the temperature")
            .under("{temperature: 0.6}")
            .as_if(&[|options| at(options, |temperature| 1.0 / temperature)]),
        Fault::new("temperature-applied-twice", "the logits are divided by the temperature twice")
            .seen("trl #3029: applied in the model's forward and again by its caller")
            .under("{temperature: 0.6}")
            .as_if(&[|options| at(options, |temperature| temperature * temperature)]),
    ]
}

/// The same options at another temperature.
pub fn at<O: Tempered>(mut options: O, change: impl FnOnce(f64) -> f64) -> O {
    let temperature = options.temperature();
    *temperature = change(*temperature);
    options
}
