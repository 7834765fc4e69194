//! Options: the conventions in which honest implementations of a contract differ.

use std::any::Any;
use std::fmt::{Debug, Display};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use arbitrary::Unstructured;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::generate::draw::{chance, one};
use crate::value::choice::{Choice, choice};
use crate::value::error::Error;
use crate::value::yaml;

choice! {
    /// Whether a row's result may depend on other rows.
    pub enum RowInfluence {
        /// It may not: a batch gives what its rows give one at a time.
        Independent = "independent",
        /// It may.
        Batch = "batch",
    }
}

/// The options that every contract has, from the `options!` macro.
pub trait SharedOptions {
    /// Whether a row's result may depend on other rows.
    fn rows(&self) -> RowInfluence;

    /// Whether two equal calls must agree.
    fn deterministic(&self) -> bool;
}

/// The options of a contract: the conventions in which honest implementations differ.
/// Declared with the `options!` macro.
pub trait Options:
    SharedOptions
    + Clone
    + Default
    + PartialEq
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Name, default and meaning of each, in order.
    fn docs() -> Vec<OptionDoc>;

    /// Why these values are refused, where they are: the option's name and what is expected.
    fn check(&self) -> Result<(), (&'static str, String)>;

    /// Options drawn at random, always valid.
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self>;
}

/// The options of a contract whose type is known at run time only.
pub trait AnyOptions: Any + Debug + Send + Sync {
    /// Whether a row's result may depend on other rows.
    fn rows(&self) -> RowInfluence;

    /// Whether two equal calls must agree.
    fn deterministic(&self) -> bool;

    /// The options as YAML on one line.
    fn yaml(&self) -> String;

    /// Each option and its value.
    fn json(&self) -> serde_json::Map<String, serde_json::Value>;

    /// The same with another value, given as YAML, for one of them.
    ///
    /// # Errors
    /// The text is no YAML, or the option takes no such value.
    fn with(&self, name: &str, value: &str) -> Result<Arc<dyn AnyOptions>, Error>;

    /// Why these values are refused, where they are: the option's name and what is expected.
    fn check(&self) -> Result<(), (&'static str, String)>;

    /// Whether the others are of the same contract and equal.
    fn equals(&self, other: &dyn AnyOptions) -> bool;
}

impl<O: Options> AnyOptions for O {
    fn rows(&self) -> RowInfluence {
        SharedOptions::rows(self)
    }

    fn deterministic(&self) -> bool {
        SharedOptions::deterministic(self)
    }

    fn yaml(&self) -> String {
        yaml::inline(self)
    }

    fn json(&self) -> serde_json::Map<String, serde_json::Value> {
        let json = serde_json::to_value(self).expect("options can be written");
        json.as_object().cloned().unwrap_or_default()
    }

    fn with(&self, name: &str, value: &str) -> Result<Arc<dyn AnyOptions>, Error> {
        Ok(Arc::new(yaml::with_key(self, name, value)?))
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        Options::check(self)
    }

    fn equals(&self, other: &dyn AnyOptions) -> bool {
        (other as &dyn Any).downcast_ref::<O>().is_some_and(|other| self == other)
    }
}

impl PartialEq for dyn AnyOptions {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl dyn AnyOptions {
    /// The options as what they are.
    ///
    /// # Panics
    /// If they are of another type: of another contract, that is.
    pub fn typed<O: 'static>(&self) -> &O {
        let typed = (self as &dyn Any).downcast_ref();
        typed.unwrap_or_else(|| panic!("options of another contract: {self:?}"))
    }
}

/// One option in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionDoc {
    /// The name.
    pub name: &'static str,
    /// The default, as in YAML.
    pub default: String,
    /// The values and what they mean.
    pub meaning: String,
    /// The JSON schema of its values.
    pub schema: serde_json::Value,
}

/// How an option is drawn of which nothing else is said.
pub trait Drawn: Sized {
    /// One of the values of a `choice!`; `true` as often as `false`.
    ///
    /// # Errors
    /// Never for lack of bytes: what is missing counts as 0.
    fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Self>;
}

impl<T: Choice> Drawn for T {
    fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        one(u, T::ALL)
    }
}

impl Drawn for bool {
    fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        chance(u, 128)
    }
}

/// Numbers that options are.
pub trait Numeric: Copy + PartialOrd + Display {
    /// One of them, in words.
    const WORD: &'static str;

    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool {
        true
    }
}

impl Numeric for f64 {
    const WORD: &'static str = "a number";

    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Numeric for i64 {
    const WORD: &'static str = "an integer";
}

impl Numeric for u8 {
    const WORD: &'static str = "an integer";
}

/// Options that have a range: numbers, and numbers that may be null.
pub trait Ranged {
    /// The kind of number.
    type Number: Numeric;
    /// What else the option may be, in words.
    const OR: &'static str;

    /// The number, where there is one.
    fn number(&self) -> Option<Self::Number>;
}

impl<T: Numeric> Ranged for T {
    type Number = T;
    const OR: &'static str = "";

    fn number(&self) -> Option<T> {
        Some(*self)
    }
}

impl<T: Numeric> Ranged for Option<T> {
    type Number = T;
    const OR: &'static str = "null or ";

    fn number(&self) -> Option<T> {
        *self
    }
}

/// The name of an option, of the name of its field: `final` of `r#final`.
pub fn option_name(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// All numbers larger than this one, as a range.
pub fn above<T>(number: T) -> (Bound<T>, Bound<T>) {
    (Bound::Excluded(number), Bound::Unbounded)
}

/// Whether an option is in its range, to which no infinity belongs.
///
/// # Errors
/// It is not: what is expected (in the range's words, where there are no others) and what was
/// found.
pub fn within<T: Ranged>(
    option: &T,
    range: impl RangeBounds<T::Number>,
    words: Option<&str>,
) -> Result<(), String> {
    match option.number() {
        Some(found) if !(found.is_finite() && range.contains(&found)) => {
            let expected = words.map_or_else(|| in_words::<T>(&range), str::to_owned);
            Err(format!("expected {expected}, found {found}"))
        }
        _ => Ok(()),
    }
}

/// A range in words.
fn in_words<T: Ranged>(range: &impl RangeBounds<T::Number>) -> String {
    let number = T::OR.to_owned() + T::Number::WORD;
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(lo), Bound::Included(hi)) => format!("{number} from {lo} to {hi}"),
        (Bound::Included(lo), Bound::Excluded(hi)) => format!("{number} from {lo} to below {hi}"),
        (Bound::Included(lo), Bound::Unbounded) => format!("{number} ≥ {lo}"),
        (Bound::Excluded(lo), Bound::Included(hi)) => format!("{number} > {lo} and at most {hi}"),
        (Bound::Excluded(lo), Bound::Excluded(hi)) => format!("{number} > {lo} and below {hi}"),
        (Bound::Excluded(lo), Bound::Unbounded) => format!("{number} > {lo}"),
        (Bound::Unbounded, Bound::Included(hi)) => format!("{number}, at most {hi}"),
        (Bound::Unbounded, Bound::Excluded(hi)) => format!("{number} below {hi}"),
        (Bound::Unbounded, Bound::Unbounded) => number,
    }
}

/// Declares the options of a contract: a struct with its defaults and its documentation, how the
/// options are checked and how they are drawn.
///
/// ```ignore
/// options! {
///     /// The options of `returns`.
///     pub struct Options {
///         /// The discount of one step, 0 to 1.
///         pub gamma: f64 = 1.0, in 0.0..=1.0, draw [1.0, 0.99, 0.9, 0.5, 0.0];
///         /// `true` or `false`: whether a mask may have gaps inside a row.
///         pub holes: bool = false;
///     }
/// }
/// ```
///
/// Behind the default may stand, in this order:
/// - `in RANGE` and `expected "WORDS"`: the range of a number, `above` being one that leaves its
///   end out, and what the message says is expected where it is not the range;
/// - `draw [VALUES]`, each as likely as the others; `chance N`, `true` in N of 256 draws; or
///   `by FUNCTION` of the bytes and the options, of which those above are drawn already. What has
///   none of them is drawn as `Drawn` says.
///
/// In front of the struct may stand, in this order:
/// - `rows: Batch;`, another default of the option `rows`. It and `deterministic`, which every
///   contract has, come with the macro, and are not drawn;
/// - `check: FUNCTION;`, for options that depend on each other: it is asked once every range holds;
/// - `draw: FUNCTION;`, which draws them all, instead of one after the other in their order.
#[doc(hidden)]
#[macro_export]
macro_rules! __options {
    (@rows) => { $crate::author::RowInfluence::Independent };
    (@rows $rows:ident) => { $crate::author::RowInfluence::$rows };

    (@schema $type:ty) => { <$type as $crate::author::OptionValue>::schema() };
    (@schema $type:ty, $range:expr) => { $crate::author::schema_within::<$type>($range) };

    (@drawn $u:ident, $options:ident, $type:ty) => { <$type as $crate::author::Drawn>::drawn($u)? };
    (@drawn $u:ident, $options:ident, $type:ty, draw $values:expr) => {
        $crate::author::draw::one($u, &$values)?
    };
    (@drawn $u:ident, $options:ident, $type:ty, chance $of:expr) => {
        $crate::author::draw::chance($u, $of)?.into()
    };
    (@drawn $u:ident, $options:ident, $type:ty, by $by:expr) => {{
        let by: fn(&mut arbitrary::Unstructured<'_>, &Self) -> arbitrary::Result<$type> = $by;
        by($u, &$options)?
    }};

    (@draw $u:ident, [$draw:expr] $($fields:tt)+) => { ($draw)($u) };
    (@draw $u:ident, [] $( $field:ident: $type:ty $(, $how:ident $what:expr)?; )+) => {{
        let mut options = Self::default();
        $( options.$field =
            $crate::author::options!(@drawn $u, options, $type $(, $how $what)?); )+
        Ok(options)
    }};

    (
        $(rows: $rows:ident;)?
        $(check: $check:expr;)?
        $(draw: $draw:expr;)?
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty = $default:expr
                    $(, in $range:expr $(, expected $words:literal)?)?
                    $(, draw $values:expr)? $(, chance $of:expr)? $(, by $by:expr)?;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            /// `independent` or `batch`: whether a row's result may depend on other rows.
            pub rows: $crate::author::RowInfluence,
            /// `true` or `false`: whether two equal calls must agree.
            pub deterministic: bool,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $default, )+
                    rows: $crate::author::options!(@rows $($rows)?),
                    deterministic: true,
                }
            }
        }

        impl $crate::author::SharedOptions for $name {
            fn rows(&self) -> $crate::author::RowInfluence {
                self.rows
            }

            fn deterministic(&self) -> bool {
                self.deterministic
            }
        }

        impl $crate::author::Options for $name {
            fn docs() -> Vec<$crate::author::OptionDoc> {
                let defaults = Self::default();
                vec![
                    $( $crate::author::OptionDoc {
                        name: $crate::author::option_name(stringify!($field)),
                        default: $crate::author::inline(&defaults.$field),
                        meaning: [$( $doc.trim() ),+].join(" "),
                        schema: $crate::author::options!(@schema $type $(, $range)?),
                    }, )+
                    $crate::author::OptionDoc {
                        name: "rows",
                        default: $crate::author::inline(&defaults.rows),
                        meaning: "`independent` or `batch`: whether a row's result may depend on \
                                  other rows."
                            .to_owned(),
                        schema: $crate::author::options!(@schema $crate::author::RowInfluence),
                    },
                    $crate::author::OptionDoc {
                        name: "deterministic",
                        default: $crate::author::inline(&defaults.deterministic),
                        meaning: "`true` or `false`: whether two equal calls must agree."
                            .to_owned(),
                        schema: $crate::author::options!(@schema bool),
                    },
                ]
            }

            fn check(&self) -> Result<(), (&'static str, String)> {
                $( $(
                    $crate::author::within(&self.$field, $range, None $(.or(Some($words)))?)
                        .map_err(|why| ($crate::author::option_name(stringify!($field)), why))?;
                )? )+
                $(
                    let check: fn(&Self) -> Result<(), (&'static str, String)> = $check;
                    check(self)?;
                )?
                Ok(())
            }

            fn draw(u: &mut arbitrary::Unstructured<'_>) -> arbitrary::Result<Self> {
                $crate::author::options!(
                    @draw u, [$($draw)?]
                    $( $field: $type $(, draw $values)? $(, chance $of)? $(, by $by)?; )+
                )
            }
        }
    };
}
#[doc(inline)]
pub use __options as options;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_follows_from_the_range() {
        let why = |outside: Result<(), String>| outside.unwrap_err();
        assert_eq!(why(within(&2.0, 0.0..=1.0, None)), "expected a number from 0 to 1, found 2");
        let below = "expected a number from 0 to below 0.5, found 0.5";
        assert_eq!(why(within(&0.5, 0.0..0.5, None)), below);
        assert_eq!(why(within(&f64::INFINITY, 0.0.., None)), "expected a number ≥ 0, found inf");
        assert_eq!(why(within(&f64::NAN, above(0.0), None)), "expected a number > 0, found NaN");
        let null = "expected null or a number > 1, found 1";
        assert_eq!(why(within(&Some(1.0), above(1.0), None)), null);
        assert_eq!(why(within(&0_i64, 1..=9, None)), "expected an integer from 1 to 9, found 0");
        assert_eq!(why(within(&2_u8, 0..=1, Some("0 or 1"))), "expected 0 or 1, found 2");
    }

    #[test]
    fn null_and_both_ends_are_in_a_range() {
        assert_eq!(within(&None, above(1.0), None), Ok(()));
        assert_eq!(within(&0.0, 0.0..=1.0, None), Ok(()));
        assert_eq!(within(&1.0, 0.0..=1.0, None), Ok(()));
    }
}
