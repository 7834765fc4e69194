//! The cases of a contract as a proptest strategy.

use std::marker::PhantomData;
use std::sync::Arc;

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::contract::Contract;
use crate::contract::erased;
use crate::contract::options::AnyOptions;
use crate::engine::stream;
use crate::value::place::Dtype;
use crate::value::record::{self, Shared};

/// The cases of a contract as a proptest [`Strategy`], for `proptest!` properties of your own.
/// They shrink as everywhere in shakedown: by value, to the same minimum.
pub fn cases<C: Contract>(options: C::Options, dtype: Dtype) -> Cases<C> {
    Cases { options, dtype }
}

/// See [`cases`].
pub struct Cases<C: Contract> {
    options: C::Options,
    dtype: Dtype,
}

impl<C: Contract> std::fmt::Debug for Cases<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cases({}, {:?})", C::ID, self.options)
    }
}

impl<C: Contract> Strategy for Cases<C> {
    type Tree = CaseTree<C>;
    type Value = C::Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let options: Arc<dyn AnyOptions> = Arc::new(self.options.clone());
        let case = stream::draw(erased::of::<C>(), runner.rng(), &*options, self.dtype);
        Ok(CaseTree {
            current: Shared::clone(&case),
            failing: case,
            candidates: None,
            options,
            dtype: self.dtype,
            of: PhantomData,
        })
    }
}

/// A walk among the simpler cases of a failing one.
pub struct CaseTree<C> {
    current: Shared,
    failing: Shared,
    candidates: Option<std::vec::IntoIter<Shared>>,
    options: Arc<dyn AnyOptions>,
    dtype: Dtype,
    of: PhantomData<fn(C)>,
}

impl<C: Contract> CaseTree<C> {
    fn next_candidate(&mut self) -> bool {
        let CaseTree { failing, candidates, options, dtype, .. } = self;
        let contract = erased::of::<C>();
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

impl<C: Contract> ValueTree for CaseTree<C> {
    type Value = C::Case;

    fn current(&self) -> C::Case {
        record::typed(Shared::clone(&self.current))
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
