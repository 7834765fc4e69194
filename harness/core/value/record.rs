//! Records: the cases and outputs of contracts, structs whose fields can be visited by name.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use ndarray::{ArrayD, ArrayViewD, Dimension, IxDyn};
use serde::Serialize;

use super::place::Dtype;

/// A family of array types: [`Host`] arrays, or tensors of a library.
pub trait Arrays: Sized {
    /// Float array of dimension `D`.
    type Float<D: Dimension>: Slot<Self>;
    /// Int64 array of dimension `D`.
    type Int<D: Dimension>: Slot<Self>;
    /// Boolean array of dimension `D`.
    type Bool<D: Dimension>: Slot<Self>;
    /// Array of texts of dimension `D`.
    type Text<D: Dimension>: Slot<Self>;
    /// Array of texts of dimension `D`, some of which may be null.
    type TextOrNull<D: Dimension>: Slot<Self>;
    /// Any value of the family, its type known at run time only.
    type Any;
}

/// Values by name, `None` where an optional field is absent.
pub type Values<T> = Vec<(&'static str, Option<T>)>;

/// Where the values of a record come from, name by name.
pub type Source<'a, T> = &'a mut dyn FnMut(&'static str) -> Option<T>;

/// What is wrong with a field, and its name.
pub type Misfit = (&'static str, String);

/// The type of one field of a record over the array family `A`: an array, one that may be absent,
/// or a list of records. A list has one value for each field of each item, under the flat name
/// that [`item`] gives.
pub trait Slot<A: Arrays>: Sized {
    /// Adds the values of the field called `name`.
    fn get(&self, name: &'static str, values: &mut Values<A::Any>);
    /// The field made of values; the error says what was expected and found.
    fn put(name: &'static str, get: Source<'_, A::Any>) -> Result<Self, Misfit>;
    /// Calls `f` with the floats of host arrays, for rounding in place.
    fn for_floats(&mut self, _: &'static str, _: &mut dyn FnMut(&'static str, &mut [f64])) {}
    /// Shows the values of host arrays to `f`.
    fn visit<'a>(&'a self, _: &'static str, _: Visitor<'_, 'a>) {}
}

/// What looks at the values of a record, name by name, without a copy.
pub type Visitor<'f, 'a> = &'f mut dyn FnMut(&'static str, Option<ValueRef<'a>>);

/// What the type of a field says of it. The host's arrays only: a tensor knows at run time.
pub trait Typed {
    /// The field called `name`.
    fn field(name: &'static str) -> Field;
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
    /// Texts, or null where there is none.
    Text,
    /// Records, each with the fields that [`Field::items`] names.
    List,
}

impl Kind {
    /// The name in the catalogue: `float`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Float => "float",
            Kind::Int => "int",
            Kind::Bool => "bool",
            Kind::Text => "text",
            Kind::List => "list",
        }
    }
}

/// A field of a record: its name and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The normative name, as in YAML, JSON, Python and on the wire.
    pub name: &'static str,
    /// What it is, in words.
    pub meaning: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// The number of dimensions; 0 is one number, `None` any number of them.
    pub ndim: Option<usize>,
    /// Whether it may be absent.
    pub optional: bool,
    /// The fields of each item of a list.
    pub items: Vec<Field>,
}

/// The host's arrays: `ndarray` of f64, i64, bool and strings.
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
    /// Texts, or null where there is none.
    Text(ArrayD<Option<String>>),
}

impl Value {
    /// The shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Float(array) => array.shape(),
            Value::Int(array) => array.shape(),
            Value::Bool(array) => array.shape(),
            Value::Text(array) => array.shape(),
        }
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Float(_) => Kind::Float,
            Value::Int(_) => Kind::Int,
            Value::Bool(_) => Kind::Bool,
            Value::Text(_) => Kind::Text,
        }
    }

    /// The floats, where it holds floats.
    pub fn floats(&self) -> Option<ArrayViewD<'_, f64>> {
        match self {
            Value::Float(array) => Some(array.view()),
            _ => None,
        }
    }

    /// The texts, where it holds texts.
    pub fn texts(&self) -> Option<ArrayViewD<'_, Option<String>>> {
        match self {
            Value::Text(array) => Some(array.view()),
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

/// A value of the host that stands in a record.
#[derive(Clone, Debug, Serialize)]
pub enum ValueRef<'a> {
    /// Floating-point numbers.
    Float(ArrayViewD<'a, f64>),
    /// 64-bit integers.
    Int(ArrayViewD<'a, i64>),
    /// Booleans.
    Bool(ArrayViewD<'a, bool>),
    /// Texts.
    Text(ArrayViewD<'a, String>),
    /// Texts, or null where there is none.
    TextOrNull(ArrayViewD<'a, Option<String>>),
}

impl ValueRef<'_> {
    /// The shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            ValueRef::Float(array) => array.shape(),
            ValueRef::Int(array) => array.shape(),
            ValueRef::Bool(array) => array.shape(),
            ValueRef::Text(array) => array.shape(),
            ValueRef::TextOrNull(array) => array.shape(),
        }
    }

    /// The value by itself.
    pub fn to_value(&self) -> Value {
        match self {
            ValueRef::Float(array) => Value::Float(array.to_owned()),
            ValueRef::Int(array) => Value::Int(array.to_owned()),
            ValueRef::Bool(array) => Value::Bool(array.to_owned()),
            ValueRef::Text(array) => Value::Text(array.mapv(Some)),
            ValueRef::TextOrNull(array) => Value::Text(array.to_owned()),
        }
    }

    /// Calls `f` with each text; with nothing where it holds no texts.
    pub fn for_texts(&self, mut f: impl FnMut(Option<&str>)) {
        match self {
            ValueRef::Text(array) => array.iter().for_each(|text| f(Some(text))),
            ValueRef::TextOrNull(array) => array.iter().for_each(|text| f(text.as_deref())),
            _ => {}
        }
    }

    /// Whether both hold the same bits: NaN equals NaN, 0.0 does not equal -0.0.
    pub fn same_bits(&self, other: &ValueRef<'_>) -> bool {
        match (self, other) {
            (ValueRef::Float(a), ValueRef::Float(b)) => {
                a.shape() == b.shape() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (ValueRef::Int(a), ValueRef::Int(b)) => a == b,
            (ValueRef::Bool(a), ValueRef::Bool(b)) => a == b,
            (ValueRef::Text(a), ValueRef::Text(b)) => a == b,
            (ValueRef::TextOrNull(a), ValueRef::TextOrNull(b)) => a == b,
            _ => false,
        }
    }
}

impl Arrays for Host {
    type Float<D: Dimension> = ndarray::Array<f64, D>;
    type Int<D: Dimension> = ndarray::Array<i64, D>;
    type Bool<D: Dimension> = ndarray::Array<bool, D>;
    type Text<D: Dimension> = ndarray::Array<String, D>;
    type TextOrNull<D: Dimension> = ndarray::Array<Option<String>, D>;
    type Any = Value;
}

/// An element of the host's arrays: how it is kept in a [`Value`].
pub trait Element: Clone + 'static {
    /// What it is in a value.
    const KIND: Kind;
    /// The value of an array of them.
    fn value(array: ArrayD<Self>) -> Value;
    /// The same, borrowed.
    fn borrowed(array: ArrayViewD<'_, Self>) -> ValueRef<'_>;
    /// The array of a value; the error says what was expected and found.
    fn array(value: Value) -> Result<ArrayD<Self>, String>;
    /// The floats, where they are floats.
    fn floats<D: Dimension>(_: &mut ndarray::Array<Self, D>) -> Option<&mut [f64]> {
        None
    }
}

macro_rules! element {
    ($element:ty, $kind:ident, $borrowed:ident $(, $floats:expr)?) => {
        impl Element for $element {
            const KIND: Kind = Kind::$kind;

            fn value(array: ArrayD<Self>) -> Value {
                Value::$kind(array)
            }

            fn borrowed(array: ArrayViewD<'_, Self>) -> ValueRef<'_> {
                ValueRef::$borrowed(array)
            }

            fn array(value: Value) -> Result<ArrayD<Self>, String> {
                match value {
                    Value::$kind(array) => Ok(array),
                    other => {
                        let (kind, found) = (Kind::$kind, other.kind());
                        Err(format!("expected {kind:?} values, found {found:?}"))
                    }
                }
            }

            $(fn floats<D: Dimension>(array: &mut ndarray::Array<Self, D>) -> Option<&mut [f64]> {
                let floats: fn(&mut ndarray::Array<Self, D>) -> Option<&mut [f64]> = $floats;
                floats(array)
            })?
        }
    };
}

element!(f64, Float, Float, |array| array.as_slice_memory_order_mut());
element!(i64, Int, Int);
element!(bool, Bool, Bool);
element!(Option<String>, Text, TextOrNull);

impl Element for String {
    const KIND: Kind = Kind::Text;

    fn value(array: ArrayD<Self>) -> Value {
        Value::Text(array.mapv(Some))
    }

    fn borrowed(array: ArrayViewD<'_, Self>) -> ValueRef<'_> {
        ValueRef::Text(array)
    }

    fn array(value: Value) -> Result<ArrayD<Self>, String> {
        let texts = Option::<String>::array(value)?;
        let null = texts.indexed_iter().find(|(_, text)| text.is_none());
        match null {
            Some((at, _)) => Err(format!("expected a text, found null at {}", index(&at))),
            None => Ok(texts.mapv(Option::unwrap_or_default)),
        }
    }
}

impl<T: Element, D: Dimension> Slot<Host> for ndarray::Array<T, D> {
    fn get(&self, name: &'static str, values: &mut Values<Value>) {
        values.push((name, Some(T::value(self.view().into_dyn().to_owned()))));
    }

    fn put(name: &'static str, get: Source<'_, Value>) -> Result<Self, Misfit> {
        let Some(value) = get(name) else { return Err((name, "missing".to_owned())) };
        let array = T::array(value).map_err(|why| (name, why))?;
        let found = array.shape().to_vec();
        array.as_standard_layout().into_owned().into_dimensionality::<D>().map_err(|_| {
            let expected = D::NDIM.unwrap_or(0);
            (name, format!("expected {expected} dimensions, found shape {found:?}"))
        })
    }

    fn for_floats(&mut self, name: &'static str, f: &mut dyn FnMut(&'static str, &mut [f64])) {
        if let Some(floats) = T::floats(self) {
            f(name, floats);
        }
    }

    fn visit<'a>(&'a self, name: &'static str, f: Visitor<'_, 'a>) {
        f(name, Some(T::borrowed(self.view().into_dyn())));
    }
}

impl<T: Element, D: Dimension> Typed for ndarray::Array<T, D> {
    fn field(name: &'static str) -> Field {
        let (kind, ndim) = (T::KIND, D::NDIM);
        Field { name, meaning: "", kind, ndim, optional: false, items: Vec::new() }
    }
}

// Only arrays may be absent: a list that is would be one without items.
impl<T: Element, D: Dimension> Typed for Option<ndarray::Array<T, D>> {
    fn field(name: &'static str) -> Field {
        Field { optional: true, ..ndarray::Array::<T, D>::field(name) }
    }
}

impl<A: Arrays, S: Slot<A>> Slot<A> for Option<S> {
    fn get(&self, name: &'static str, values: &mut Values<A::Any>) {
        match self {
            Some(slot) => slot.get(name, values),
            None => values.push((name, None)),
        }
    }

    fn put(name: &'static str, get: Source<'_, A::Any>) -> Result<Self, Misfit> {
        let value = get(name);
        value.map(|value| S::put(name, &mut single(value))).transpose()
    }

    fn for_floats(&mut self, name: &'static str, f: &mut dyn FnMut(&'static str, &mut [f64])) {
        if let Some(slot) = self {
            slot.for_floats(name, f);
        }
    }

    fn visit<'a>(&'a self, name: &'static str, f: Visitor<'_, 'a>) {
        match self {
            Some(slot) => slot.visit(name, f),
            None => f(name, None),
        }
    }
}

/// A source of one value, whatever its name.
pub fn single<T>(value: T) -> impl FnMut(&'static str) -> Option<T> {
    let mut value = Some(value);
    move |_| value.take()
}

impl<A: Arrays, R: Record<A>> Slot<A> for Vec<R> {
    fn get(&self, name: &'static str, values: &mut Values<A::Any>) {
        for (index, record) in self.iter().enumerate() {
            let fields = record.values().into_iter();
            values.extend(fields.map(|(field, value)| (item(name, index, field), value)));
        }
    }

    /// As many items as there are values for, one after the other.
    fn put(name: &'static str, get: Source<'_, A::Any>) -> Result<Self, Misfit> {
        let mut items = Vec::new();
        loop {
            let (index, mut any) = (items.len(), false);
            let made = R::from_values(&mut |field| {
                let value = get(item(name, index, field));
                any |= value.is_some();
                value
            });
            match made {
                _ if !any => return Ok(items),
                Ok(record) => items.push(record),
                Err((field, why)) => return Err((item(name, index, field), why)),
            }
        }
    }

    fn for_floats(&mut self, name: &'static str, f: &mut dyn FnMut(&'static str, &mut [f64])) {
        for (index, record) in self.iter_mut().enumerate() {
            record.for_floats(&mut |field, floats| f(item(name, index, field), floats));
        }
    }

    fn visit<'a>(&'a self, name: &'static str, f: Visitor<'_, 'a>) {
        for (index, record) in self.iter().enumerate() {
            record.visit(&mut |field, value| f(item(name, index, field), value));
        }
    }
}

impl<R: Record<Host>> Typed for Vec<R> {
    fn field(name: &'static str) -> Field {
        let (kind, ndim, items) = (Kind::List, Some(1), R::fields());
        Field { name, meaning: "", kind, ndim, optional: false, items }
    }
}

/// The flat name of a field of a list's item: `micro_batches.0.mask`. These names live as long as
/// the program; there are a few dozen.
pub fn item(list: &'static str, index: usize, field: &'static str) -> &'static str {
    type Names = BTreeMap<(&'static str, usize, &'static str), &'static str>;
    static NAMES: RwLock<Names> = RwLock::new(Names::new());
    let key = (list, index, field);
    let known = NAMES.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
    known.unwrap_or_else(|| {
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        names.entry(key).or_insert_with(|| Box::leak(format!("{list}.{index}.{field}").into()))
    })
}

/// Whether a flat name is one of those that some patterns mean: `micro_batches.*.mask` means that
/// field of every item.
pub fn is_named(patterns: &[&str], name: &str) -> bool {
    let fits = |pattern: &&str| {
        let mut parts = name.split('.');
        let fits = pattern.split('.').all(|wanted| {
            parts.next().is_some_and(|part| part == wanted || (wanted == "*" && is_index(part)))
        });
        fits && parts.next().is_none()
    };
    patterns.iter().any(fits)
}

fn is_index(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

/// The values of a record as they are nested, for YAML, JSON and people.
pub enum Tree {
    /// The value of a field.
    Value(Value),
    /// The items of a list, each with its fields.
    List(Vec<Branch>),
}

/// The fields of a record that are there.
pub type Branch = Vec<(&'static str, Tree)>;

/// The fields of a record that are there, lists as lists.
pub fn tree(record: &dyn AnyRecord) -> Branch {
    let mut branch = Branch::new();
    record.each(&mut |name, value| {
        if let Some(value) = value {
            graft(&mut branch, name, value.to_value());
        }
    });
    branch
}

/// Puts a value where its flat name says. The values of a list follow each other.
fn graft(branch: &mut Branch, name: &'static str, value: Value) {
    let parts = name.split_once('.').and_then(|(list, rest)| Some((list, rest.split_once('.')?)));
    let Some((list, (index, field))) = parts else {
        return branch.push((name, Tree::Value(value)));
    };
    if !matches!(branch.last(), Some((last, Tree::List(_))) if *last == list) {
        branch.push((list, Tree::List(Vec::new())));
    }
    let (Some((_, Tree::List(items))), Ok(index)) = (branch.last_mut(), index.parse::<usize>())
    else {
        unreachable!("`{name}` is no name of an item")
    };
    items.resize_with(items.len().max(index + 1), Branch::new);
    graft(&mut items[index], field, value);
}

/// A struct of named fields over the array family `A`. Declared with the `record!` macro.
pub trait Record<A: Arrays = Host>: Sized {
    /// The same record over another family.
    type Over<B: Arrays>: Record<B>;

    /// The documentation, whose heading `# Shapes` says how large each field is.
    const DOC: &'static str;

    /// The fields, in the order of declaration.
    fn fields() -> Vec<Field>;

    /// Each field's value, in the order of the fields, those of a list under flat names.
    fn values(&self) -> Values<A::Any>;

    /// A record made field by field; the error names the field.
    fn from_values(get: Source<'_, A::Any>) -> Result<Self, Misfit>;

    /// Calls `f` with each field's floats, for host arrays.
    fn for_floats(&mut self, f: &mut dyn FnMut(&'static str, &mut [f64]));

    /// Shows each field's value to `f`, for host arrays.
    fn visit<'a>(&'a self, f: Visitor<'_, 'a>);
}

/// A record of the host whose type is known at run time only: what a case or an output is to
/// everything that is compiled once for all contracts.
pub trait AnyRecord: Any + Debug + Send + Sync {
    /// Shows each field's value to `f`, in the order of the fields.
    fn each<'a>(&'a self, f: Visitor<'_, 'a>);

    /// The same record with its floats rounded to a dtype.
    fn rounded(&self, dtype: Dtype) -> Shared;

    /// The same record with its floats changed.
    fn with_floats(&self, change: &mut dyn FnMut(&'static str, &mut [f64])) -> Shared;

    /// Whether the other one is of the same type and equal.
    fn equals(&self, other: &dyn AnyRecord) -> bool;
}

/// A record that is handed around.
pub type Shared = Arc<dyn AnyRecord>;

impl<R: Record + Clone + PartialEq + Debug + Send + Sync + 'static> AnyRecord for R {
    fn each<'a>(&'a self, f: Visitor<'_, 'a>) {
        self.visit(f);
    }

    fn rounded(&self, dtype: Dtype) -> Shared {
        let mut rounded = self.clone();
        round(&mut rounded, dtype);
        Arc::new(rounded)
    }

    fn with_floats(&self, change: &mut dyn FnMut(&'static str, &mut [f64])) -> Shared {
        let mut changed = self.clone();
        changed.for_floats(change);
        Arc::new(changed)
    }

    fn equals(&self, other: &dyn AnyRecord) -> bool {
        (other as &dyn Any).downcast_ref::<R>().is_some_and(|other| self == other)
    }
}

impl PartialEq for dyn AnyRecord {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl dyn AnyRecord {
    /// Each field's value.
    pub fn values(&self) -> Values<Value> {
        let owned = |value: Option<ValueRef<'_>>| value.map(|value| value.to_value());
        self.fields().into_iter().map(|(name, value)| (name, owned(value))).collect()
    }

    /// Each field's value, where it stands.
    pub fn fields(&self) -> Values<ValueRef<'_>> {
        let mut fields = Values::new();
        self.each(&mut |name, value| fields.push((name, value)));
        fields
    }

    /// The record as what it is.
    ///
    /// # Panics
    /// If it is of another type: of another contract, that is.
    pub fn typed<R: 'static>(&self) -> &R {
        let typed = (self as &dyn Any).downcast_ref();
        typed.unwrap_or_else(|| panic!("a record of another contract: {self:?}"))
    }
}

/// The record as what it is.
///
/// # Panics
/// If it is of another type: of another contract, that is.
pub fn typed<R: Clone + Send + Sync + 'static>(record: Shared) -> R {
    let record: Arc<dyn Any + Send + Sync> = record;
    let typed = record.downcast().unwrap_or_else(|_| panic!("a record of another contract"));
    Arc::unwrap_or_clone(typed)
}

/// The same, still shared.
///
/// # Panics
/// If it is of another type: of another contract, that is.
pub fn shared<R: Send + Sync + 'static>(record: &Shared) -> Arc<R> {
    let record: Arc<dyn Any + Send + Sync> = Arc::clone(record) as _;
    record.downcast().unwrap_or_else(|_| panic!("a record of another contract"))
}

/// Declares a record: a struct generic over its array family, with [`Record`] for it.
///
/// Write field types over the family `A`: `A::Float<Ix1>`, `A::Int<Ix0>` for one number,
/// `Option<A::Float<Ix3>>` where the field may be absent, `Vec<MicroBatch<A>>` for a list of
/// another record. A list's items are told apart from no item by their first field, which is
/// required.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            $( $(#[doc = $field_doc:literal])+ pub $field:ident : $type:ty ),+ $(,)?
        }
    ) => {
        $(#[doc = $doc])+
        pub struct $name<A: $crate::author::Arrays = $crate::author::Host> {
            $( $(#[doc = $field_doc])+ pub $field: $type, )+
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
                f.write_str(&$crate::author::one_line(self))
            }
        }

        impl $crate::author::IntoOutput<$name> for $name {
            const IS_RECORD: bool = true;

            fn into_output(
                self,
                _: &$crate::author::Form<'_>,
            ) -> Result<$name, $crate::author::Failure> {
                Ok(self)
            }
        }

        impl<A: $crate::author::Arrays> $crate::author::Record<A> for $name<A> {
            type Over<B: $crate::author::Arrays> = $name<B>;
            const DOC: &'static str = concat!($( $doc, "\n" ),+);

            fn fields() -> Vec<$crate::author::Field> {
                fn of<A: $crate::author::Arrays>() -> Vec<$crate::author::Field>
                where
                    $( $type: $crate::author::Typed ),+
                {
                    vec![$( $crate::author::Field {
                        meaning: concat!($( $field_doc ),+).trim_ascii(),
                        ..<$type as $crate::author::Typed>::field(stringify!($field))
                    } ),+]
                }
                of::<$crate::author::Host>()
            }

            fn values(&self) -> $crate::author::Values<A::Any> {
                let mut values = Vec::with_capacity([$( stringify!($field) ),+].len());
                $( $crate::author::Slot::<A>::get(&self.$field, stringify!($field), &mut values); )+
                values
            }

            fn from_values(
                get: $crate::author::Source<'_, A::Any>,
            ) -> Result<Self, $crate::author::Misfit> {
                Ok(Self {
                    $( $field: <$type as $crate::author::Slot<A>>::put(stringify!($field), get)?, )+
                })
            }

            fn for_floats(&mut self, f: &mut dyn FnMut(&'static str, &mut [f64])) {
                $( $crate::author::Slot::<A>::for_floats(
                    &mut self.$field,
                    stringify!($field),
                    f,
                ); )+
            }

            fn visit<'a>(&'a self, f: $crate::author::Visitor<'_, 'a>) {
                $( $crate::author::Slot::<A>::visit(&self.$field, stringify!($field), f); )+
            }
        }
    };
}
#[doc(inline)]
pub use __record as record;

/// Whether two records hold the same bits in every field.
pub fn same_bits(a: &dyn AnyRecord, b: &dyn AnyRecord) -> bool {
    let (a, b) = (a.fields(), b.fields());
    a.len() == b.len()
        && a.iter().zip(&b).all(|((name, a), (other, b))| {
            name == other
                && match (a, b) {
                    (Some(a), Some(b)) => a.same_bits(b),
                    (a, b) => a.is_none() && b.is_none(),
                }
        })
}

/// Whether every float of a record is one of the dtype.
pub fn is_exact(record: &dyn AnyRecord, dtype: Dtype) -> bool {
    let exact = |x: &f64| dtype.round(*x).to_bits() == x.to_bits();
    dtype == Dtype::F64 || floats(record).iter().all(|(_, array)| array.iter().all(exact))
}

/// Rounds the floats of a case to a dtype.
pub fn round<R: Record>(case: &mut R, dtype: Dtype) {
    if dtype != Dtype::F64 {
        case.for_floats(&mut |_, floats| {
            for x in floats {
                *x = dtype.round(*x);
            }
        });
    }
}

/// Whether a field holds floats.
pub fn is_float(field: &Field) -> bool {
    field.kind == Kind::Float
}

/// The float fields of a record that are present, by name.
pub fn floats(record: &dyn AnyRecord) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
    let mut floats = Vec::new();
    record.each(&mut |name, value| {
        if let Some(ValueRef::Float(array)) = value {
            floats.push((name, array));
        }
    });
    floats
}

/// A float field of a record, where it is present.
pub fn float<'a>(record: &'a dyn AnyRecord, field: &str) -> Option<ArrayViewD<'a, f64>> {
    let mut found = None;
    record.each(&mut |name, value| match value {
        Some(ValueRef::Float(array)) if name == field => found = Some(array),
        _ => {}
    });
    found
}

/// The text fields of a record that are present, by name.
pub fn texts(record: &dyn AnyRecord) -> Vec<(&'static str, ArrayD<Option<String>>)> {
    let mut texts = Vec::new();
    record.each(&mut |name, value| match value {
        Some(ValueRef::Text(array)) => texts.push((name, array.mapv(Some))),
        Some(ValueRef::TextOrNull(array)) => texts.push((name, array.to_owned())),
        _ => {}
    });
    texts
}

/// An index in brackets, nothing for the index of a single number.
pub fn index(index: &IxDyn) -> String {
    if index.ndim() == 0 {
        return String::new();
    }
    let parts: Vec<String> = index.slice().iter().map(usize::to_string).collect();
    format!("[{}]", parts.join(", "))
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro declares public records")]
pub(crate) mod tests {
    use ndarray::{Ix0, Ix2, arr0, arr2};

    use super::*;
    use crate::value::text::one_line;

    record! {
        /// An item of the list below.
        pub struct Part {
            /// Numbers.
            pub losses: A::Float<Ix2>,
            /// Flags, or none.
            pub mask: Option<A::Bool<Ix2>>,
        }
    }

    record! {
        /// A number, then a list, then another number.
        pub struct Parts {
            /// One integer.
            pub steps: A::Int<Ix0>,
            /// Of any widths.
            pub parts: Vec<Part<A>>,
            /// One float.
            pub rate: A::Float<Ix0>,
        }
    }

    /// Two items of different width, the second without a mask.
    pub fn parts() -> Parts {
        let first = Part { losses: arr2(&[[1.0, 2.0]]), mask: Some(arr2(&[[true, false]])) };
        let second = Part { losses: arr2(&[[-0.0], [0.1]]), mask: None };
        Parts { steps: arr0(3), parts: vec![first, second], rate: arr0(0.5) }
    }

    #[test]
    fn lists_have_one_flat_name_for_each_field_of_each_item() {
        let names: Vec<&str> = parts().values().iter().map(|(name, _)| *name).collect();
        let expected =
            ["steps", "parts.0.losses", "parts.0.mask", "parts.1.losses", "parts.1.mask", "rate"];
        assert_eq!(names, expected);
        let mut floats = Vec::new();
        parts().for_floats(&mut |name, numbers| floats.push((name, numbers.len())));
        assert_eq!(floats, [("parts.0.losses", 2), ("parts.1.losses", 2), ("rate", 1)]);
    }

    #[test]
    fn records_are_made_of_their_own_values() {
        let mut values: std::collections::HashMap<_, _> = parts().values().into_iter().collect();
        let back = Parts::from_values(&mut |name| values.remove(name).flatten()).unwrap();
        assert!(same_bits(&back, &parts()) && values.is_empty());
        let mut other = parts();
        other.parts.pop();
        assert!(!same_bits(&other, &parts()));
    }

    #[test]
    fn an_error_in_an_item_names_it() {
        let value = |name: &str| match name {
            "steps" => Some(Value::Int(arr0(1).into_dyn())),
            "parts.0.losses" => Some(Value::Float(arr2(&[[1.0]]).into_dyn())),
            "parts.1.losses" => Some(Value::Bool(arr2(&[[true]]).into_dyn())),
            _ => None,
        };
        let error = Parts::from_values(&mut |name| value(name)).unwrap_err();
        assert_eq!(error, ("parts.1.losses", "expected Float values, found Bool".to_owned()));
    }

    #[test]
    fn people_see_lists_as_lists() {
        let expected = "steps 3  parts [{losses [[1, 2]], mask [[1, 0]]}, {losses [[-0], [0.1]]}]  \
                        rate 0.5";
        assert_eq!(one_line(&parts()), expected);
    }

    #[test]
    fn a_star_stands_for_any_item() {
        let patterns = ["rate", "parts.*.losses"];
        for name in ["rate", "parts.0.losses", "parts.12.losses"] {
            assert!(is_named(&patterns, name), "{name}");
        }
        for name in ["rates", "parts.0.mask", "parts.losses", "parts.0.losses.0", "parts"] {
            assert!(!is_named(&patterns, name), "{name}");
        }
    }
}
