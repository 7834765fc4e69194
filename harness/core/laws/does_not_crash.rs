//! The component does not take its process along.
//!
//! ### Claim
//! A call does not end the process.
//!
//! ### Why it matters
//! A native extension that reads past a buffer, an `exit()` in a library, memory that runs out:
//! the training process is gone, and its last checkpoint is hours old.
//!
//! ### Does not hold for
//! Components in the process of the harness, whose end is the end of the run; the next run begins
//! with the case that was in flight.
//!
//! ### Bugs it has caught
//! Index kernels that trust their ids; `sys.exit` in scripts used as modules.
//!
//! ### Example
//! In `group-advantage`:
//! ```diff
//!          if len(own) < 2:
//! -            raise SystemExit(f"group {group} has one completion")
//! +            continue
//! ```

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::laws::answers;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    answers::law("does-not-crash", include_str!("does_not_crash.rs"), |probe| {
        answers::check("does-not-crash", probe)
    })
}
