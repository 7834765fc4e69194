//! Implementations under test: reference objectives on tensors, historical bugs, real libraries.
//!
//! | contract | reference on tensors | historical bugs | real libraries |
//! |---|---|---|---|
//! | `group-advantage` | [`advantage`] | [`zoo`]: prime-rl #390, AReaL #225 | TRL, `python/` |
//! | `token-log-probs` | [`log_probs`] | [`zoo`]: OpenRLHF #634 | TRL, `python/` |

pub mod advantage;
pub mod log_probs;
pub mod zoo;

use tch::Kind;

/// The format to compute in: f32 for the half formats, which are for storage.
fn arithmetic(kind: Kind) -> Kind {
    match kind {
        Kind::Half | Kind::BFloat16 => Kind::Float,
        own => own,
    }
}
