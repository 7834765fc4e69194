//! Too few tokens for a deviation give what is declared.
//!
//! ### Claim
//! A set of fewer than ddof + 1 tokens gives 0, its values, or NaN, as declared.
//!
//! ### Why it matters
//! A last batch of one token, or rows of which all but one are filtered, come up once in a long
//! run: what comes out then is a NaN that ends it, unless somebody thought of it.
//!
//! ### Does not hold for
//! `empty_mask: refuse` (see `refuses`) and `avoid`; `ddof: 0`, which needs no second token.
//!
//! ### Bugs it has caught
//! ROLL #475: no token is guarded, one is not.
//!
//! ### Example
//! ```diff
//! -    variance = squares / (count - ddof)
//! +    variance = squares / (count - ddof).clamp(min=1)
//! ```

use crate::whiten::{Whiten, is_few, sets};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::StabilityConstant,
    &["one-token-unbiased-deviation", "one-token-keeps-its-value", "one-token-gives-zero"],
    check,
)
.under(|options| {
    options.ddof > 0 && matches!(options.empty_mask, EmptyMask::Zero | EmptyMask::Nan)
});

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let returned = probe.output()?;
    let expected = probe.expected();
    let few = sets(probe.case, probe.options);
    let few = few.into_iter().filter(|set| is_few(set.len(), probe.options)).flatten();
    let mut checked = false;
    for at in few {
        checked = true;
        let (found, wanted) = (returned.output.whitened[at], expected[0].numbers[[at.0, at.1]]);
        if !probe.tolerance.accepts(found, wanted, 1) {
            broken!(
                "the value {} has too few beside it; whitened[{}, {}] is {}, expected {}",
                number(probe.case.values[at]),
                at.0,
                at.1,
                rounded(found),
                rounded(wanted.value),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
