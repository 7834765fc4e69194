//! Records: the cases and outputs of contracts, structs whose fields can be visited by name.

use ndarray::{ArrayD, ArrayViewD, Dimension};

/// A family of array types: [`Host`] arrays, or tensors of a library.
pub trait Arrays: Sized {
    /// Float array of dimension `D`.
    type Float<D: Dimension>: Slot<Self>;
    /// Int64 array of dimension `D`.
    type Int<D: Dimension>: Slot<Self>;
    /// Boolean array of dimension `D`.
    type Bool<D: Dimension>: Slot<Self>;
    /// Any value of the family, its type known at run time only.
    type Any;
}

/// The type of one field of a record over the array family `A`.
pub trait Slot<A: Arrays>: Sized {
    /// The value; `None` for an optional field that is absent.
    fn get(&self) -> Option<A::Any>;
    /// The field made of a value; the error says what was expected and found.
    fn put(value: Option<A::Any>) -> Result<Self, String>;
    /// The floats of a host array, for rounding in place.
    fn floats_mut(&mut self) -> Option<&mut [f64]> {
        None
    }
}

/// What the type of a field says of it. The host's arrays only: a tensor knows at run time.
pub trait Typed {
    /// The kind and the number of dimensions, and whether the field may be absent.
    fn shape_of() -> (Kind, usize, bool);
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Floating-point numbers.
    Float,
    /// 64-bit integers.
    Int,
    /// Booleans.
    Bool,
}

/// A field of a record: its name and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The normative name, as in `contracts.md`, YAML, JSON, Python and on the wire.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// The number of dimensions.
    pub ndim: usize,
    /// Whether it may be absent.
    pub optional: bool,
}

/// The host's arrays: `ndarray` of f64, i64 and bool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host;

/// A value of the host, its type known at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Floating-point numbers.
    Float(ArrayD<f64>),
    /// 64-bit integers.
    Int(ArrayD<i64>),
    /// Booleans.
    Bool(ArrayD<bool>),
}

impl Value {
    /// The shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Float(array) => array.shape(),
            Value::Int(array) => array.shape(),
            Value::Bool(array) => array.shape(),
        }
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Float(_) => Kind::Float,
            Value::Int(_) => Kind::Int,
            Value::Bool(_) => Kind::Bool,
        }
    }

    /// The floats, where it holds floats.
    pub fn floats(&self) -> Option<ArrayViewD<'_, f64>> {
        match self {
            Value::Float(array) => Some(array.view()),
            _ => None,
        }
    }

    /// Whether both hold the same bits: NaN equals NaN, 0.0 does not equal -0.0.
    pub fn same_bits(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => {
                a.shape() == b.shape() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            _ => self == other,
        }
    }
}

impl Arrays for Host {
    type Float<D: Dimension> = ndarray::Array<f64, D>;
    type Int<D: Dimension> = ndarray::Array<i64, D>;
    type Bool<D: Dimension> = ndarray::Array<bool, D>;
    type Any = Value;
}

macro_rules! host_slot {
    ($element:ty, $kind:ident, $floats:expr) => {
        impl<D: Dimension> Slot<Host> for ndarray::Array<$element, D> {
            fn get(&self) -> Option<Value> {
                Some(Value::$kind(self.view().into_dyn().to_owned()))
            }

            fn put(value: Option<Value>) -> Result<Self, String> {
                let expected = D::NDIM.unwrap_or(0);
                match value {
                    None => Err("missing".to_owned()),
                    Some(Value::$kind(array)) => {
                        let found = array.shape().to_vec();
                        let array = array.as_standard_layout().into_owned();
                        array.into_dimensionality::<D>().map_err(|_| {
                            format!("expected {expected} dimensions, found shape {found:?}")
                        })
                    }
                    Some(other) => {
                        Err(format!("expected {:?} values, found {:?}", Kind::$kind, other.kind()))
                    }
                }
            }

            fn floats_mut(&mut self) -> Option<&mut [f64]> {
                let floats: fn(&mut Self) -> Option<&mut [f64]> = $floats;
                floats(self)
            }
        }

        impl<D: Dimension> Typed for ndarray::Array<$element, D> {
            fn shape_of() -> (Kind, usize, bool) {
                (Kind::$kind, D::NDIM.unwrap_or(0), false)
            }
        }
    };
}

host_slot!(f64, Float, |array| array.as_slice_memory_order_mut());
host_slot!(i64, Int, |_| None);
host_slot!(bool, Bool, |_| None);

impl<A: Arrays, S: Slot<A>> Slot<A> for Option<S> {
    fn get(&self) -> Option<A::Any> {
        self.as_ref().and_then(S::get)
    }

    fn put(value: Option<A::Any>) -> Result<Self, String> {
        value.map(|value| S::put(Some(value))).transpose()
    }

    fn floats_mut(&mut self) -> Option<&mut [f64]> {
        self.as_mut().and_then(S::floats_mut)
    }
}

impl<S: Typed> Typed for Option<S> {
    fn shape_of() -> (Kind, usize, bool) {
        let (kind, ndim, _) = S::shape_of();
        (kind, ndim, true)
    }
}

/// A struct of named fields over the array family `A`. Declared with the `record!` macro.
pub trait Record<A: Arrays = Host>: Sized {
    /// The same record over another family.
    type Over<B: Arrays>: Record<B>;

    /// The fields, in the order of declaration.
    fn fields() -> Vec<Field>;

    /// Each field's value, in the order of the fields; `None` where an optional one is absent.
    fn values(&self) -> Vec<(&'static str, Option<A::Any>)>;

    /// A record made field by field; the error names the field.
    fn from_values(
        get: &mut dyn FnMut(&'static str) -> Option<A::Any>,
    ) -> Result<Self, (&'static str, String)>;

    /// Calls `f` with each field's floats, for host arrays.
    fn for_floats(&mut self, f: &mut dyn FnMut(&'static str, &mut [f64]));
}

/// Declares a record: a struct generic over its array family, with [`Record`] for it.
///
/// Write field types over the family `A`: `A::Float<Ix1>`, or `Option<A::Float<Ix3>>` where the
/// field may be absent.
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name<A: $crate::record::Arrays = $crate::record::Host> {
            $( $(#[$field_meta])* pub $field: $type, )+
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                Self { $( $field: self.$field.clone(), )+ }
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                $( self.$field == other.$field )&&+
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::record::one_line(self))
            }
        }

        impl<A: $crate::record::Arrays> $crate::record::Record<A> for $name<A> {
            type Over<B: $crate::record::Arrays> = $name<B>;

            fn fields() -> Vec<$crate::record::Field> {
                fn of<A: $crate::record::Arrays>() -> Vec<$crate::record::Field>
                where
                    $( $type: $crate::record::Typed ),+
                {
                    vec![$({
                        let (kind, ndim, optional) = <$type as $crate::record::Typed>::shape_of();
                        $crate::record::Field { name: stringify!($field), kind, ndim, optional }
                    }),+]
                }
                of::<$crate::record::Host>()
            }

            fn values(&self) -> Vec<(&'static str, Option<A::Any>)> {
                vec![$( (stringify!($field), $crate::record::Slot::<A>::get(&self.$field)) ),+]
            }

            fn from_values(
                get: &mut dyn FnMut(&'static str) -> Option<A::Any>,
            ) -> Result<Self, (&'static str, String)> {
                Ok(Self {
                    $( $field: <$type as $crate::record::Slot<A>>::put(get(stringify!($field)))
                        .map_err(|problem| (stringify!($field), problem))?, )+
                })
            }

            fn for_floats(&mut self, f: &mut dyn FnMut(&'static str, &mut [f64])) {
                $(
                    if let Some(floats) = $crate::record::Slot::<A>::floats_mut(&mut self.$field) {
                        f(stringify!($field), floats);
                    }
                )+
            }
        }
    };
}

/// Whether two records hold the same bits in every field.
pub fn same_bits<R: Record>(a: &R, b: &R) -> bool {
    a.values().iter().zip(b.values()).all(|((_, a), (_, b))| match (a, &b) {
        (Some(a), Some(b)) => a.same_bits(b),
        (a, b) => a.is_none() && b.is_none(),
    })
}

/// The record in one line for people: `rewards [0, 1]  groups [0, 0]`.
pub fn one_line<R: Record>(record: &R) -> String {
    let parts = record.values().into_iter().filter_map(|(name, value)| {
        value.map(|value| format!("{name} {}", crate::text::value(&value)))
    });
    parts.collect::<Vec<_>>().join("  ")
}
