//! Components for tests: `group-advantage`, right but for what a function does to its output.

use std::sync::Arc;

use ndarray::{Array1, arr1};

use shakedown_contracts::group_advantage::{GroupAdvantage, GroupAdvantageCase, Options, Scale};
use shakedown_core::contract::Contract as _;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::erased::{self, AnyContract};
use shakedown_core::value::place::Place;
use shakedown_core::value::record::Shared;
use shakedown_engine::subject::Subject;

/// A call of the component.
pub(crate) type Asked<'a> = Call<'a, GroupAdvantage>;

/// What is wrong with it: the function is given the right advantages.
pub(crate) type Wrong = fn(&Asked<'_>, &mut Array1<f64>) -> Result<(), Failure>;

/// The component.
pub(crate) struct Ours(pub(crate) Wrong);

impl Component<GroupAdvantage> for Ours {
    fn call(&mut self, call: &Asked<'_>) -> Result<Returned<GroupAdvantage>, Failure> {
        let Call { case, options, place, gradient } = call;
        assert!(!gradient, "an advantage has none");
        let mut output = (GroupAdvantage::PARTS.reference)(case, options, place.dtype);
        (self.0)(call, &mut output.advantages)?;
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

/// The same with its types known at run time only.
pub(crate) fn ours(wrong: Wrong) -> Box<dyn Component> {
    erased::component(Ours(wrong))
}

/// A subject of a component of which these invariants are checked; all where none is named.
pub(crate) fn subject(component: Box<dyn Component>, only: &[&str]) -> Subject {
    let only = only.iter().map(|id| (*id).to_owned()).collect();
    Subject { only, ..Subject::new(contract(), "ours", component) }
}

/// Its contract.
pub(crate) fn contract() -> &'static dyn AnyContract {
    erased::of::<GroupAdvantage>()
}

/// Rewards that no corner and no regression has.
pub(crate) const SMALL: f64 = 7.3125;
pub(crate) const LARGE: f64 = 8.6875;

/// Whether a reward is in the case.
pub(crate) fn has(call: &Asked<'_>, reward: f64) -> bool {
    call.case.rewards.iter().any(|one| *one == reward)
}

/// What the fault `not-divided` gives.
pub(crate) fn not_divided(call: &Asked<'_>) -> Array1<f64> {
    let options = Options { scale: Scale::None, ..call.options.clone() };
    (GroupAdvantage::PARTS.reference)(call.case, &options, call.place.dtype).advantages
}

/// What no fault explains.
pub(crate) fn nameless(advantages: &mut Array1<f64>) {
    advantages.mapv_inplace(|x| x + 0.3 * (37.0 * x).sin());
}

/// An exception.
pub(crate) fn raised(message: &str) -> Failure {
    Failure::Raised { message: message.to_owned(), traceback: String::new() }
}

/// No answer.
pub(crate) const HANGS: Failure = Failure::TimedOut { limit_ms: 1 };

/// A case of one group.
pub(crate) fn case(rewards: &[f64]) -> Shared {
    let groups = Array1::zeros(rewards.len());
    Arc::new(GroupAdvantageCase { rewards: arr1(rewards), groups })
}

/// Its rewards.
pub(crate) fn rewards(case: &Shared) -> Vec<f64> {
    case.typed::<GroupAdvantageCase>().rewards.to_vec()
}
