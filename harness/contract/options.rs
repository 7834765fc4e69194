//! Options: the conventions in which honest implementations of a contract differ.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use arbitrary::Unstructured;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::value::error::Error;
use crate::value::yaml;

/// Whether a row's result may depend on other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowInfluence {
    /// It may not: a batch gives what its rows give one at a time.
    Independent,
    /// It may.
    Batch,
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
}

/// Declares the options of a contract: a struct, its defaults and its documentation. The options
/// `rows` and `deterministic`, which every contract has, come with it; `rows: Batch;` in front
/// gives the former another default.
#[doc(hidden)]
#[macro_export]
macro_rules! __options {
    (rows: $rows:ident; $($struct:tt)+) => {
        $crate::author::options! { @with $rows; $($struct)+ }
    };
    (
        @with $rows:ident;
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ pub $field:ident : $type:ty = $default:expr ),+ $(,)?
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
                    rows: $crate::author::RowInfluence::$rows,
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

        impl $name {
            fn option_docs() -> Vec<$crate::author::OptionDoc> {
                let defaults = Self::default();
                vec![
                    $( $crate::author::OptionDoc {
                        name: stringify!($field),
                        default: $crate::author::inline(&defaults.$field),
                        meaning: [$( $doc.trim() ),+].join(" "),
                    }, )+
                    $crate::author::OptionDoc {
                        name: "rows",
                        default: $crate::author::inline(&defaults.rows),
                        meaning: "`independent` or `batch`: whether a row's result may depend on \
                                  other rows."
                            .to_owned(),
                    },
                    $crate::author::OptionDoc {
                        name: "deterministic",
                        default: $crate::author::inline(&defaults.deterministic),
                        meaning: "`true` or `false`: whether two equal calls must agree."
                            .to_owned(),
                    },
                ]
            }
        }
    };
    ($($struct:tt)+) => {
        $crate::author::options! { @with Independent; $($struct)+ }
    };
}
#[doc(inline)]
pub use __options as options;
