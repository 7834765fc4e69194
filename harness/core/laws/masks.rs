//! The input classes of every contract with a mask.

use crate::contract::class::Class;
use crate::contract::rows::Masked;
use crate::generate::masks::has_hole;
use crate::value::place::Dtype;

/// The input classes of every contract with a mask.
pub fn classes<C: Masked>() -> Vec<Class<C>> {
    fn rows<C: Masked>(case: &C::Case, is: impl Fn(&[bool]) -> bool) -> bool {
        C::mask(case).rows().into_iter().any(|row| is(&row.to_vec()))
    }
    let always: fn(&C::Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let mut classes = vec![
        class("no-mask", "every token counts", |c, _| C::mask(c).iter().all(|m| *m), always),
        class(
            "right-padding",
            "a row that ends in masked tokens",
            |c, _| rows::<C>(c, |row| row[0] && !row[row.len() - 1]),
            always,
        ),
        class(
            "masked-start",
            "a row that begins with masked tokens",
            |c, _| rows::<C>(c, |row| !row[0] && row.contains(&true)),
            always,
        ),
        class(
            "one-token-of-several",
            "a row of two columns or more with one token",
            |c, _| rows::<C>(c, |row| row.len() > 1 && row.iter().filter(|m| **m).count() == 1),
            always,
        ),
        class(
            "unequal-lengths",
            "rows with different numbers of tokens",
            |c, _| {
                let mask = C::mask(c);
                let counts = mask.rows().into_iter().map(|row| row.iter().filter(|m| **m).count());
                let counts: Vec<usize> = counts.collect();
                counts.iter().any(|count| *count != counts[0])
            },
            always,
        ),
        class(
            "empty-row",
            "a row without a token, beside others",
            |c, _| C::mask(c).nrows() > 1 && rows::<C>(c, |row| !row.contains(&true)),
            always,
        ),
        class("one-row", "N = 1", |c, _| C::mask(c).nrows() == 1, always),
        class("one-column", "T = 1", |c, _| C::mask(c).ncols() == 1, always),
        class(
            "square",
            "N = T ≥ 2",
            |c, _| C::mask(c).is_square() && C::mask(c).nrows() > 1,
            always,
        ),
        class("long-rows", "T ≥ 12", |c, _| C::mask(c).ncols() >= 12, always),
    ];
    classes.extend([
        class(
            "holes",
            "a row with a gap between its tokens",
            |c, _| rows::<C>(c, |row| has_hole(row)),
            |options, _| C::holes(options),
        ),
        class(
            "empty-batch",
            "no token counts",
            |c, _| !C::mask(c).iter().any(|m| *m),
            |options, _| C::empty_batches(options),
        ),
    ]);
    classes
}
