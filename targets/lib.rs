//! Implementations under test: reference objectives on tensors, historical bugs, real libraries.
//!
//! | contract | reference on tensors | historical bugs | real libraries |
//! |---|---|---|---|
//! | `length-penalty` | [`length_penalty`] | | |
//! | `group-advantage` | [`advantage`] | [`zoo`]: prime-rl #390, AReaL #225 | TRL, `python/` |
//! | `outcome-advantage` | [`outcome`] | | |
//! | `gae` | [`gae`] | | |
//! | `rollout-gae` | [`rollout_gae`] | | |
//! | `returns` | [`returns`] | [`zoo`]: verl #7278, trl #7024, slime #1372 | |
//! | `whiten` | [`whiten`] | | |
//! | `token-log-probs` | [`log_probs`] | [`zoo`]: OpenRLHF #634 | TRL, `python/` |
//! | `token-entropy` | [`entropy`] | | |
//! | `kl-estimate` | [`kl`] | | |
//! | `policy-loss` | [`policy`] | | |
//! | `value-loss` | [`value`] | | |
//! | `preference-loss` | [`preference`] | | |
//! | `accumulated-loss` | [`accumulate`] | | |
//! | `policy-update` | [`bandit`], [`pairs`] | | |
//!
//! Four algorithms are made of these: [`reinforce`], [`ppo`], [`grpo`] and [`dpo`]. Each learns in
//! an example: `cargo run -p shakedown-targets --example grpo`.

pub mod accumulate;
pub mod advantage;
pub mod bandit;
pub mod chance;
pub mod completions;
pub mod dpo;
pub mod entropy;
pub mod gae;
pub mod grpo;
pub mod kl;
pub mod length_penalty;
pub mod log_probs;
pub mod masked;
#[expect(missing_docs, reason = "contracts.md says what each option means")]
pub mod options;
pub mod outcome;
pub mod pairs;
pub mod policy;
pub mod ppo;
pub mod preference;
pub mod reinforce;
pub mod returns;
pub mod rollout_gae;
pub mod value;
pub mod whiten;
pub mod zoo;

use tch::Kind;

/// The format to compute in: f32 for the half formats, which are for storage.
fn arithmetic(kind: Kind) -> Kind {
    match kind {
        Kind::Half | Kind::BFloat16 => Kind::Float,
        own => own,
    }
}
