//! Reports for people and machines: HTML, JUnit, SARIF, annotations.

pub(crate) mod github;
pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod sarif;
pub(crate) mod subjects;
