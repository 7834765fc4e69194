//! Reports for people and machines: HTML, JUnit, SARIF, annotations.

pub(crate) mod github;
pub(crate) mod html;
#[cfg(feature = "junit")]
pub(crate) mod junit;
pub(crate) mod sarif;
pub(crate) mod subjects;
