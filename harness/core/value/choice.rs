//! `choice!`: named values of an option.

/// An option of a few named values.
pub trait Choice: Copy + 'static {
    /// Every value.
    const ALL: &'static [Self];
    /// The name of each and what it means.
    const NAMES: &'static [(&'static str, &'static str)];
    /// All names, for a message.
    const EXPECTED: &'static str;
}

/// Declares an option's set of named values: an enum, its names, and how it is read and written.
#[doc(hidden)]
#[macro_export]
macro_rules! __choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[doc = $doc:literal])* $variant:ident = $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[doc = $doc])* #[serde(rename = $text)] $variant ),+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$( $name::$variant ),+];
        }

        impl $crate::author::Choice for $name {
            const ALL: &'static [$name] = $name::ALL;
            const NAMES: &'static [(&'static str, &'static str)] =
                &[$( ($text, concat!($( $doc ),*).trim_ascii()) ),+];
            const EXPECTED: &'static str = concat!("expected one of", $( " `", $text, "`" ),+);
        }
    };
}
#[doc(inline)]
pub use __choice as choice;
