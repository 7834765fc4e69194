//! `choice!`: named values of an option.

/// Declares an option's set of named values: an enum, its names, and how it is read and written.
#[macro_export]
macro_rules! choice {
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
    };
}
