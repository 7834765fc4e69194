//! What the attribute `contract` expands to.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use shakedown_core::contract::Contract;
use shakedown_core::contract::from_input::FromInput;
use shakedown_core::contract::schema::OptionValue;
use shakedown_core::value::record::Record as _;
use shakedown_engine::host::function::{HostFn, HostFunction};
use shakedown_engine::host::tensors::{Library, TensorFn, TensorFunction};

use crate::door::check::{Check, check_component};

/// A check of a function that is written at a place.
pub fn check<C: Contract, F: HostFunction<C> + Send + 'static>(
    function: F,
    names: &'static [&'static str],
    (name, file, line): (&str, &'static str, u32),
) -> Check<C> {
    check_component(HostFn { function, names, source: Some((file, line)) }).named(name)
}

/// The same, of a function on tensors of a library.
pub fn check_on<L, C, F>(
    function: F,
    names: &'static [&'static str],
    (name, file, line): (&str, &'static str, u32),
) -> Check<C>
where
    L: Library,
    C: Contract,
    F: TensorFunction<L, C> + Send + 'static,
{
    check_component(TensorFn::<L, C, F>::new(function).at(names, file, line)).named(name)
}

/// An input, held for a function that takes it as `P`.
pub struct Held<'c, P: FromInput<F>, F: 'static>(P::Held<'c>, PhantomData<fn(F)>);

impl<'c, P: FromInput<F>, F: 'static> Held<'c, P, F> {
    /// Holds it.
    ///
    /// # Panics
    /// If the function cannot take it as this type: as if it panicked itself.
    #[track_caller]
    pub fn hold(name: &str, input: &'c F) -> Self {
        let held = P::hold(input).unwrap_or_else(|why| panic!("the input `{name}`: {why}"));
        Held(held, PhantomData)
    }

    /// Lends it.
    pub fn lend(&mut self) -> P::Lent<'_> {
        P::lend(&mut self.0)
    }
}

/// The length of the first, second or third axis of the input that has most.
///
/// # Panics
/// If it has no such axis.
#[track_caller]
pub fn length<C: Contract>(case: &C::Case, axis: usize) -> usize {
    let mut shape = Vec::new();
    case.visit(&mut |_, value| {
        let found = value.map_or_else(Vec::new, |value| value.shape().to_vec());
        if found.len() > shape.len() {
            shape = found;
        }
    });
    let length = shape.get(axis).copied();
    length.unwrap_or_else(|| panic!("the inputs of {} have fewer axes than {}", C::ID, axis + 1))
}

/// The text of an option, which has been read by the compiler.
pub struct Text<T>(&'static str, PhantomData<fn() -> T>);

/// A text as an option of type `T`.
///
/// # Panics
/// If it is none of the option's values: an error of the compiler, which calls this.
pub const fn text<T: OptionValue>(text: &'static str) -> Text<T> {
    let mut place = 0;
    while place < T::NAMES.len() {
        if same(T::NAMES[place].0, text) {
            return Text(text, PhantomData);
        }
        place += 1;
    }
    if !T::EXPECTED.is_empty() {
        panic!("{}", T::EXPECTED);
    }
    Text(text, PhantomData)
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut place = 0;
    while place < a.len() && place < b.len() && a[place] == b[place] {
        place += 1;
    }
    place == a.len() && place == b.len()
}

impl<T: OptionValue> Text<T> {
    /// The value.
    pub fn value(self) -> T {
        T::of_text(self.0).expect("the compiler has read it")
    }
}

/// What an option of this type may be set to: its value, or the value without `Some`.
#[diagnostic::on_unimplemented(
    message = "this option is of type `{Self}`, found `{V}`",
    label = "not a value of this option"
)]
pub trait SetTo<V> {
    /// The value of the option.
    fn set_to(value: V) -> Self;
}

impl<T> SetTo<T> for T {
    fn set_to(value: T) -> T {
        value
    }
}

impl<T> SetTo<T> for Option<T> {
    fn set_to(value: T) -> Option<T> {
        Some(value)
    }
}

/// The value of an option.
pub fn value<V, T: SetTo<V>>(value: V) -> T {
    T::set_to(value)
}

/// Waits for the end of an async function that needs no runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
