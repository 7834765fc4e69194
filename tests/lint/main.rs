//! The rules about what surrounds components: what they read, when they fire, and when not.

mod config_limits;
mod config_rules;
mod configs;
mod data;
mod libraries;
mod logs;
mod run_rules;
