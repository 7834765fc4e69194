//! The reference implementation of `completion-mask`, as a trainer would write it: one pass that
//! counts the ends seen so far, then the rows in which there was none.

use ndarray::Array2;

use super::{CompletionMaskCase, Options, Unfinished};

/// The mask, true where the token was sampled.
pub(super) fn mask(case: &CompletionMaskCase, options: &Options) -> Array2<bool> {
    let mut mask = Array2::from_elem(case.tokens.dim(), true);
    for (tokens, mut mask) in case.tokens.rows().into_iter().zip(mask.rows_mut()) {
        let mut ended = false;
        for (id, counts) in tokens.iter().zip(&mut mask) {
            let ends = options.eos.contains(id);
            *counts = !ended && (options.include_eos || !ends);
            ended |= ends;
        }
        match options.unfinished {
            _ if ended => {}
            Unfinished::Keep => {
                for (id, counts) in tokens.iter().zip(&mut mask).rev() {
                    if *id != options.pad {
                        break;
                    }
                    *counts = false;
                }
            }
            Unfinished::All => {}
            Unfinished::Drop => mask.fill(false),
        }
    }
    mask
}
