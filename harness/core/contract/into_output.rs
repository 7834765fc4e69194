//! Outputs in the types that a function in Rust returns: numbers, vectors, arrays, tuples of them.

use std::fmt::Display;

use ndarray::{Array, ArrayD, Dimension, IxDyn};

use crate::contract::component::Failure;
use crate::value::place::Dtype;
use crate::value::record::{Field, Kind, Record, Value};

/// What a function may return for the outputs `O`: the record itself; the first output that its
/// type can hold; a tuple of some; or a `Result` of any of these, whose error is a finding.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no output of a contract",
    label = "a function under test cannot return this",
    note = "return a number, a `Vec` or an array of ndarray; of f64, f32, half::bf16, half::f16, \
            i64, i32, u32, usize, bool, String or Option<String>; a tuple of these; the contract's \
            own struct of outputs; or a `Result` of one of them"
)]
pub trait IntoOutput<O>: Sized {
    /// The format of its floats; `None` where it has none, or they say nothing of the arithmetic.
    const DTYPE: Option<Dtype> = None;
    /// Whether it is the record itself, with its own fields for gradients.
    const IS_RECORD: bool = false;

    /// The record.
    ///
    /// # Errors
    /// The function failed, or returned what the outputs cannot hold.
    fn into_output(self, form: &Form<'_>) -> Result<O, Failure>;
}

/// What the outputs of a call look like, for those that come without names or shapes.
pub struct Form<'a> {
    /// The outputs that are returned, in their order, where they are named.
    pub names: &'a [&'static str],
    /// The float outputs that hold whole numbers.
    pub whole: &'a [&'static str],
    /// The shape that an output must have, where it is known before.
    pub shape: &'a dyn Fn(&Field) -> Option<Vec<usize>>,
}

impl<O, T: IntoOutput<O>, E: Display> IntoOutput<O> for Result<T, E> {
    const DTYPE: Option<Dtype> = T::DTYPE;
    const IS_RECORD: bool = T::IS_RECORD;

    fn into_output(self, form: &Form<'_>) -> Result<O, Failure> {
        let raised = |error: E| {
            let message = format!("an error: {error}");
            Failure::Raised { message, traceback: String::new() }
        };
        self.map_err(raised)?.into_output(form)
    }
}

impl<O: Record, T: Parts> IntoOutput<O> for T {
    const DTYPE: Option<Dtype> = T::DTYPE;

    fn into_output(self, form: &Form<'_>) -> Result<O, Failure> {
        let mut parts = Vec::new();
        self.parts(&mut parts);
        named::<O>(parts, form).map_err(|problem| Failure::Malformed { problem })
    }
}

/// Gives each part its name.
fn named<O: Record>(parts: Vec<Part>, form: &Form<'_>) -> Result<O, String> {
    let fields = O::fields();
    let mut left: Vec<&Field> = fields.iter().collect();
    let mut values: Vec<(&'static str, Value)> = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let wanted = |field: &&Field| match form.names.get(index) {
            Some(name) => field.name == *name,
            None => form.names.is_empty() && part.fits(field, form.whole),
        };
        let Some(place) = left.iter().position(wanted) else {
            let of = fields.iter().map(|field| format!("`{}`", field.name));
            let of: Vec<String> = of.collect();
            let what = format!("returned {part}, which is none of the outputs {}", of.join(", "));
            return Err(what);
        };
        let field = left.remove(place);
        let value = part.shaped(field, form).map_err(|why| format!("`{}`: {why}", field.name))?;
        values.push((field.name, value));
    }
    let mut take = |name: &'static str| {
        let place = values.iter().position(|(other, _)| *other == name)?;
        Some(values.swap_remove(place).1)
    };
    O::from_values(&mut take).map_err(|(name, why)| format!("`{name}`: {why}"))
}

/// One value that a function returned.
pub struct Part {
    value: Value,
    /// Whether it has a shape of its own, or is the cells of one row by row.
    shaped: bool,
}

impl Part {
    fn fits(&self, field: &Field, whole: &[&str]) -> bool {
        let kind = match self.value.kind() {
            kind @ (Kind::Int | Kind::Bool) if whole.contains(&field.name) => {
                field.kind == kind || field.kind == Kind::Float
            }
            kind => field.kind == kind,
        };
        let dimensions = match field.ndim {
            None => true,
            Some(ndim) if self.shaped => ndim == self.value.shape().len(),
            Some(ndim) => ndim > 0,
        };
        kind && dimensions
    }

    fn shaped(self, field: &Field, form: &Form<'_>) -> Result<Value, String> {
        let value = match self.value {
            Value::Int(array) if form.whole.contains(&field.name) && field.kind == Kind::Float => {
                Value::Float(array.mapv(|x| x as f64))
            }
            Value::Bool(array) if form.whole.contains(&field.name) && field.kind == Kind::Float => {
                Value::Float(array.mapv(f64::from))
            }
            value => value,
        };
        match (form.shape)(field) {
            Some(shape) if !self.shaped => reshaped(value, &shape),
            _ => Ok(value),
        }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.value.kind().name();
        match (self.shaped, self.value.shape()) {
            (_, []) => write!(f, "one {kind}"),
            (false, shape) => write!(f, "{} {kind} cells", shape[0]),
            (true, shape) => write!(f, "an array of {kind} of shape {shape:?}"),
        }
    }
}

/// Cells in a row as an array of a shape.
fn reshaped(value: Value, shape: &[usize]) -> Result<Value, String> {
    fn array<T: Clone>(cells: ArrayD<T>, shape: &[usize]) -> Result<ArrayD<T>, String> {
        let found = cells.len();
        cells.into_shape_with_order(IxDyn(shape)).map_err(|_| {
            let expected: usize = shape.iter().product();
            format!("{found} cells, expected {expected}: shape {shape:?}")
        })
    }
    Ok(match value {
        Value::Float(cells) => Value::Float(array(cells, shape)?),
        Value::Int(cells) => Value::Int(array(cells, shape)?),
        Value::Bool(cells) => Value::Bool(array(cells, shape)?),
        Value::Text(cells) => Value::Text(array(cells, shape)?),
    })
}

/// Values without names.
pub trait Parts {
    /// The format of their floats.
    const DTYPE: Option<Dtype> = None;

    /// Adds them.
    fn parts(self, parts: &mut Vec<Part>);
}

/// A cell of an output: an `f32`, kept as an `f64`.
pub trait OutputCell: Sized {
    /// The format, where it is one of floats.
    const DTYPE: Option<Dtype> = None;

    /// The value of an array of them.
    fn value(cells: ArrayD<Self>) -> Value;
}

macro_rules! cells {
    ($( $cell:ty, $dtype:expr, $value:expr; )+) => { $(
        impl OutputCell for $cell {
            const DTYPE: Option<Dtype> = $dtype;

            fn value(cells: ArrayD<Self>) -> Value {
                let value: fn(ArrayD<Self>) -> Value = $value;
                value(cells)
            }
        }

        impl Parts for $cell {
            const DTYPE: Option<Dtype> = $dtype;

            fn parts(self, parts: &mut Vec<Part>) {
                let value = <$cell>::value(ndarray::arr0(self).into_dyn());
                parts.push(Part { value, shaped: true });
            }
        }
    )+ };
}

cells! {
    f64, Some(Dtype::F64), Value::Float;
    f32, Some(Dtype::F32), |cells| Value::Float(cells.mapv(f64::from));
    half::bf16, Some(Dtype::Bf16), |cells| Value::Float(cells.mapv(f64::from));
    half::f16, Some(Dtype::F16), |cells| Value::Float(cells.mapv(f64::from));
    i64, None, Value::Int;
    i32, None, |cells| Value::Int(cells.mapv(i64::from));
    u32, None, |cells| Value::Int(cells.mapv(i64::from));
    usize, None, |cells| Value::Int(cells.mapv(|x| x as i64));
    bool, None, Value::Bool;
    String, None, |cells| Value::Text(cells.mapv(Some));
    Option<String>, None, Value::Text;
}

impl<T: OutputCell> Parts for Vec<T> {
    const DTYPE: Option<Dtype> = T::DTYPE;

    fn parts(self, parts: &mut Vec<Part>) {
        let value = T::value(ndarray::Array1::from(self).into_dyn());
        parts.push(Part { value, shaped: false });
    }
}

impl<T: OutputCell + Clone, D: Dimension> Parts for Array<T, D> {
    const DTYPE: Option<Dtype> = T::DTYPE;

    fn parts(self, parts: &mut Vec<Part>) {
        parts.push(Part { value: T::value(self.into_dyn()), shaped: true });
    }
}

/// The coarser of two formats.
const fn coarser(a: Option<Dtype>, b: Option<Dtype>) -> Option<Dtype> {
    const fn rank(dtype: Option<Dtype>) -> u8 {
        match dtype {
            None => 0,
            Some(Dtype::F64) => 1,
            Some(Dtype::F32) => 2,
            Some(Dtype::Bf16) => 3,
            Some(Dtype::F16) => 4,
        }
    }
    if rank(a) >= rank(b) { a } else { b }
}

macro_rules! tuples {
    ($( ($( $part:ident )+) )+) => { $(
        impl<$( $part: Parts ),+> Parts for ($( $part, )+) {
            const DTYPE: Option<Dtype> = {
                let dtype = None;
                $( let dtype = coarser(dtype, $part::DTYPE); )+
                dtype
            };

            #[expect(non_snake_case, reason = "one letter is the type and the value")]
            fn parts(self, parts: &mut Vec<Part>) {
                let ($( $part, )+) = self;
                $( $part.parts(parts); )+
            }
        }
    )+ };
}

tuples! { (A B) (A B C) (A B C D) (A B C D E) }
