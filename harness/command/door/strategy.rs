//! The cases of a contract as a proptest strategy.

use std::fmt;
use std::sync::Arc;

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use shakedown_core::contract::Contract;
use shakedown_core::contract::erased::{self, AnyContract};
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::stream;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{self, Shared};

/// The cases of a contract as a proptest [`Strategy`], for `proptest!` properties of your own.
/// They shrink as everywhere in shakedown: by value, to the same minimum.
pub fn cases<C: Contract>(
    options: C::Options,
    dtype: Dtype,
) -> impl Strategy<Value = C::Case> + use<C> {
    cases_of(erased::of::<C>(), Arc::new(options), dtype).prop_map(record::typed)
}

/// The same, of a contract whose types are known at run time only.
pub fn cases_of(
    contract: &'static dyn AnyContract,
    options: Arc<dyn AnyOptions>,
    dtype: Dtype,
) -> Cases {
    Cases { contract, options, dtype }
}

/// See [`cases_of`].
#[derive(Clone)]
pub struct Cases {
    contract: &'static dyn AnyContract,
    options: Arc<dyn AnyOptions>,
    dtype: Dtype,
}

impl fmt::Debug for Cases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cases({}, {:?})", self.contract.id(), self.options)
    }
}

impl Strategy for Cases {
    type Tree = CaseTree;
    type Value = Shared;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let case = stream::draw(self.contract, runner.rng(), &*self.options, self.dtype);
        let current = Shared::clone(&case);
        Ok(CaseTree { strategy: self.clone(), current, failing: case, candidates: None })
    }
}

/// A walk among the simpler cases of a failing one.
pub struct CaseTree {
    strategy: Cases,
    current: Shared,
    failing: Shared,
    candidates: Option<std::vec::IntoIter<Shared>>,
}

impl CaseTree {
    fn next_candidate(&mut self) -> bool {
        let CaseTree { strategy: Cases { contract, options, dtype }, failing, candidates, .. } =
            self;
        let limit = contract.measure(&**failing);
        let candidates = candidates
            .get_or_insert_with(|| contract.simpler(&**failing, &**options, *dtype).into_iter());
        let next = candidates.find(|candidate| {
            contract.measure(&**candidate) < limit
                && contract.valid(&**candidate, &**options, *dtype).is_ok()
        });
        let found = next.is_some();
        self.current = next.unwrap_or_else(|| Shared::clone(failing));
        found
    }
}

impl ValueTree for CaseTree {
    type Value = Shared;

    fn current(&self) -> Shared {
        Shared::clone(&self.current)
    }

    fn simplify(&mut self) -> bool {
        self.failing = Shared::clone(&self.current);
        self.candidates = None;
        self.next_candidate()
    }

    fn complicate(&mut self) -> bool {
        self.next_candidate()
    }
}
