//! Faults of a mask over rows and tokens: forgotten, cut, laid over other axes, or another row's.

use crate::contract::fault::Fault;
use crate::contract::rows::Masked;

/// The mask is not looked at.
pub fn mask_ignored<C: Masked>(seen: &'static str) -> Fault<C> {
    Fault::new("mask-ignored", "every place counts")
        .seen(seen)
        .on(&[|case, _| C::mask_mut(case).fill(true)])
}

/// One token less at the end.
pub fn last_token_left_out<C: Masked>(seen: &'static str) -> Fault<C> {
    Fault::new("last-token-left-out", "the last token of each row does not count").seen(seen).on(&[
        |case, _| {
            for mut row in C::mask_mut(case).rows_mut() {
                let last = row.iter().rposition(|kept| *kept);
                last.into_iter().for_each(|last| row[last] = false);
            }
        },
    ])
}

/// One token less at the start: the first one of each row, or the first column.
pub fn first_token_left_out<C: Masked>(seen: &'static str) -> Fault<C> {
    Fault::new("first-token-left-out", "the first token of each row does not count").seen(seen).on(
        &[
            |case, _| {
                for mut row in C::mask_mut(case).rows_mut() {
                    let first = row.iter().position(|kept| *kept);
                    first.into_iter().for_each(|first| row[first] = false);
                }
            },
            |case, _| C::mask_mut(case).column_mut(0).fill(false),
        ],
    )
}

/// The mask of other places: where N = T, of those across the diagonal; of the first row.
pub fn of_other_rows<C: Masked>() -> [Fault<C>; 2] {
    [
        Fault::new("mask-transposed", "where N = T, the mask is laid over the other axes")
            .seen("trl 4db63af98, #6095: a broadcast that raises nothing in square batches")
            .on(&[|case, _| {
                let mask = C::mask_mut(case);
                if mask.is_square() {
                    *mask = mask.t().as_standard_layout().into_owned();
                }
            }]),
        Fault::new("mask-of-the-first-row", "the mask of the first row is that of every row")
            .seen("mutation: `mask[0]`, and a broadcast that was not meant")
            .on(&[|case, _| {
                let mask = C::mask_mut(case);
                let first = mask.row(0).to_owned();
                mask.rows_mut().into_iter().for_each(|mut row| row.assign(&first));
            }]),
    ]
}
