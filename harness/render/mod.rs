//! Reports for people and machines: text, HTML, JUnit, SARIF, annotations.

#[cfg(feature = "cli")]
pub(crate) mod github;
#[cfg(feature = "cli")]
pub(crate) mod html;
#[cfg(feature = "cli")]
pub(crate) mod junit;
#[cfg(feature = "cli")]
pub(crate) mod sarif;
#[cfg(feature = "cli")]
pub(crate) mod subjects;
pub mod text;
