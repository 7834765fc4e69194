//! Inputs in the types that a function in Rust takes: slices, vectors, arrays, numbers, texts.

use std::fmt::Debug;

use ndarray::{Array, Array2, ArrayView, Dimension, Ix0};

use crate::value::record::Record;

/// A type in which a function takes the input of type `F`: `&[f32]` where the contract has an
/// array of floats.
#[diagnostic::on_unimplemented(
    message = "an input of type `{F}` cannot be taken as `{Self}`",
    label = "this parameter cannot take the input",
    note = "floats are taken as f64, f32, half::bf16, half::f16; integers as i64, i32, u32, usize; \
            booleans as bool, f64, f32, u8; texts as String, &str",
    note = "an array is taken as a slice or a `Vec` of its cells row by row, or as an array or a \
            view of ndarray of the same dimension; in an `Option` where it may be absent"
)]
pub trait FromInput<F: 'static> {
    /// What holds the input during the call.
    type Held<'c>;
    /// What the function is given.
    type Lent<'l>;

    /// Makes what holds it.
    ///
    /// # Errors
    /// Why it cannot be taken in this type: -100 as a `u32`.
    fn hold(input: &F) -> Result<Self::Held<'_>, String>;

    /// Lends it to the function.
    fn lend<'l>(held: &'l mut Self::Held<'_>) -> Self::Lent<'l>;
}

/// A cell in the type that a function takes: an `f64` as an `f32`.
pub trait Cell<S>: Sized + 'static {
    /// The cell; `None` where this type has no such value.
    fn cell(source: &S) -> Option<Self>;
}

macro_rules! cells {
    ($( $source:ty => $( $target:ty = $cell:expr ),+; )+) => { $( $(
        impl Cell<$source> for $target {
            fn cell(source: &$source) -> Option<Self> {
                let cell: fn(&$source) -> Option<Self> = $cell;
                cell(source)
            }
        }

        impl FromInput<Array<$source, Ix0>> for $target {
            type Held<'c> = $target;
            type Lent<'l> = $target;

            fn hold(input: &Array<$source, Ix0>) -> Result<$target, String> {
                cell(&input[()])
            }

            fn lend(held: &mut $target) -> $target {
                held.clone()
            }
        }
    )+ )+ };
}

cells! {
    f64 =>
        f64 = |x| Some(*x),
        f32 = |x| Some(*x as f32),
        half::bf16 = |x| Some(half::bf16::from_f64(*x)),
        half::f16 = |x| Some(half::f16::from_f64(*x));
    i64 =>
        i64 = |x| Some(*x),
        i32 = |x| i32::try_from(*x).ok(),
        u32 = |x| u32::try_from(*x).ok(),
        usize = |x| usize::try_from(*x).ok();
    bool =>
        bool = |x| Some(*x),
        f64 = |x| Some(f64::from(*x)),
        f32 = |x| Some(f32::from(*x)),
        u8 = |x| Some(u8::from(*x));
    String => String = |x| Some(x.clone());
    Option<String> => Option<String> = |x| Some(x.clone());
}

fn cell<S: Debug, T: Cell<S>>(source: &S) -> Result<T, String> {
    T::cell(source).ok_or_else(|| {
        let target = std::any::type_name::<T>();
        format!("{source:?} is no {target}: take i64, or leave such cells out by an option")
    })
}

/// The cells of an array, row by row.
fn cells<S: Debug, T: Cell<S>, D: Dimension>(input: &Array<S, D>) -> Result<Vec<T>, String> {
    input.iter().map(cell).collect()
}

fn rows<S: Debug, T: Cell<S>>(input: &Array2<S>) -> Result<Vec<Vec<T>>, String> {
    input.rows().into_iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn array<S: Debug, T: Cell<S>, D: Dimension>(input: &Array<S, D>) -> Result<Array<T, D>, String> {
    let cells = cells(input)?;
    Ok(Array::from_shape_vec(input.raw_dim(), cells).expect("as many cells as before"))
}

/// One way to take arrays: what holds one, how that is made, and how it is lent.
macro_rules! taken {
    ($source:ty => $target:ty, of $array:ty, [$( $generic:tt )*]
     $held:ty = $hold:expr, $lent:ty = |$lend:ident| $how:expr) => {
        impl<T: Cell<$source>, $( $generic )*> FromInput<$array> for $target {
            type Held<'c> = $held;
            type Lent<'l> = $lent;

            fn hold(input: &$array) -> Result<$held, String> {
                $hold(input)
            }

            fn lend($lend: &mut $held) -> Self::Lent<'_> {
                $how
            }
        }
    };
}

/// The ways to take arrays of some cells. Not one for all cells: a crate may add cells.
macro_rules! arrays {
    ($( $source:ty ),+) => { $(
        taken!($source => &'static [T], of Array<$source, D>, [D: Dimension + 'static]
            Vec<T> = cells, &'l [T] = |held| held);
        taken!($source => Vec<T>, of Array<$source, D>, [D: Dimension + 'static]
            Vec<T> = cells, Vec<T> = |held| std::mem::take(held));
        taken!($source => &'static [Vec<T>], of Array2<$source>, []
            Vec<Vec<T>> = rows, &'l [Vec<T>] = |held| held);
        taken!($source => Vec<Vec<T>>, of Array2<$source>, []
            Vec<Vec<T>> = rows, Vec<Vec<T>> = |held| std::mem::take(held));
        taken!($source => &'static Array<T, D>, of Array<$source, D>, [D: Dimension + 'static]
            Array<T, D> = array, &'l Array<T, D> = |held| held);
        taken!($source => ArrayView<'static, T, D>, of Array<$source, D>, [D: Dimension + 'static]
            Array<T, D> = array, ArrayView<'l, T, D> = |held| held.view());
        taken!($source => Array<T, D>, of Array<$source, D>, [D: Dimension + 'static]
            Option<Array<T, D>> = |input| array(input).map(Some),
            Array<T, D> = |held| held.take().expect("it is lent once"));
    )+ };
}

arrays! { f64, i64, bool, String, Option<String> }

impl<D: Dimension + 'static> FromInput<Array<String, D>> for &'static [&'static str] {
    type Held<'c> = Vec<&'c str>;
    type Lent<'l> = &'l [&'l str];

    fn hold(input: &Array<String, D>) -> Result<Vec<&str>, String> {
        Ok(input.iter().map(String::as_str).collect())
    }

    fn lend<'l>(held: &'l mut Vec<&str>) -> &'l [&'l str] {
        held
    }
}

impl FromInput<Array<String, Ix0>> for &'static str {
    type Held<'c> = &'c str;
    type Lent<'l> = &'l str;

    fn hold(input: &Array<String, Ix0>) -> Result<&str, String> {
        Ok(&input[()])
    }

    fn lend<'l>(held: &'l mut &str) -> &'l str {
        held
    }
}

/// Records of a list, as they are.
impl<R: Record + 'static> FromInput<Vec<R>> for &'static [R] {
    type Held<'c> = &'c [R];
    type Lent<'l> = &'l [R];

    fn hold(input: &Vec<R>) -> Result<&[R], String> {
        Ok(input)
    }

    fn lend<'l>(held: &'l mut &[R]) -> &'l [R] {
        held
    }
}

/// An input that may be absent, as one that may be absent.
impl<F: 'static, P: FromInput<F>> FromInput<Option<F>> for Option<P> {
    type Held<'c> = Option<P::Held<'c>>;
    type Lent<'l> = Option<P::Lent<'l>>;

    fn hold(input: &Option<F>) -> Result<Self::Held<'_>, String> {
        input.as_ref().map(P::hold).transpose()
    }

    fn lend<'l>(held: &'l mut Self::Held<'_>) -> Self::Lent<'l> {
        held.as_mut().map(P::lend)
    }
}
