//! The component answers in time.
//!
//! ### Claim
//! A call ends within the time limit.
//!
//! ### Why it matters
//! A reward function that hangs on one completion (a symbolic comparison, a regular expression
//! that backtracks) stops a training run without a word.
//!
//! ### Does not hold for
//! Components that are slow on purpose: raise `timeout_ms`.
//!
//! ### Bugs it has caught
//! Verifiers that parse LaTeX with a backtracking grammar; timeouts by SIGALRM that work in the
//! main thread only.
//!
//! ### Example
//! In `answer-extractor`:
//! ```diff
//! -    pattern = re.compile(rf"<{tag}>((?:.+\n?)*?)</{tag}>")
//! +    pattern = re.compile(f"<{tag}>(.*?)</{tag}>", re.DOTALL)
//! ```

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::laws::answers;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    answers::law("within-time-limit", include_str!("within_time_limit.rs"), |probe| {
        answers::check("within-time-limit", probe)
    })
}
