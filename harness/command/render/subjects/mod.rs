//! What was found out about runs, configurations and data sets, for people and machines.

pub(crate) mod github;
pub(crate) mod html;
#[cfg(feature = "junit")]
pub(crate) mod junit;
pub(crate) mod sarif;
mod spark;
pub(crate) mod text;
