//! What a case is made of, and how it looks to people and in files. Knows no contract.

pub mod choice;
pub mod error;
pub mod exit;
pub mod location;
pub mod place;
pub mod record;
pub mod redact;
pub mod text;
pub mod wire;
pub mod yaml;
