//! Masks as real batches have them, and what may stand under them.

use arbitrary::{Result, Unstructured};
use ndarray::Array2;

use crate::generate::draw::{chance, one};
use crate::numeric::conventions::MaskedValues;

/// The number of rows and tokens of a case, bent towards shapes in which broadcasting hides: equal
/// dimensions, one row, one token; now and then a batch as training has them.
pub fn shape(u: &mut Unstructured<'_>) -> Result<(usize, usize)> {
    let small = [(1, 1), (2, 2), (1, 2), (2, 1), (3, 3), (2, 3), (3, 2), (1, 4), (4, 1), (2, 5)];
    let large = [(4, 4), (3, 6), (4, 7), (8, 8), (5, 12), (16, 32)];
    if chance(u, 200)? { one(u, &small) } else { one(u, &large) }
}

/// A mask: true where the token counts. Each row is one of the shapes on which real bugs showed:
/// all, right or left padding, a prompt in front, one token at either end, none, and with `holes`
/// gaps between turns.
pub fn mask(
    u: &mut Unstructured<'_>,
    (rows, tokens): (usize, usize),
    holes: bool,
) -> Result<Array2<bool>> {
    let mut mask = Array2::from_elem((rows, tokens), true);
    if chance(u, 60)? {
        return Ok(mask);
    }
    for mut row in mask.rows_mut() {
        let style = one(u, &[0, 1, 1, 1, 2, 3, 4, 5, 6, 7])?;
        let (from, to) = (u.choose_index(tokens)?, u.choose_index(tokens)?);
        let (from, to) = (from.min(to), from.max(to));
        let gaps = u64::from_le_bytes(u.arbitrary()?);
        for (column, kept) in row.iter_mut().enumerate() {
            *kept = match style {
                0 => true,
                1 => column <= to,
                2 => column >= from,
                3 => (from..=to).contains(&column),
                4 => column == 0,
                5 => column + 1 == tokens,
                6 => false,
                _ if holes => gaps >> (column % 64) & 1 == 1,
                _ => column < tokens.div_ceil(2),
            };
        }
    }
    Ok(mask)
}

/// Numbers for masked places: what a pad, an uninitialised buffer or a failed model leaves there.
pub fn poison(u: &mut Unstructured<'_>, values: MaskedValues, finite: &[f64]) -> Result<f64> {
    match values {
        MaskedValues::Any if chance(u, 160)? => {
            one(u, &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
        }
        _ => one(u, finite),
    }
}

/// Whether a mask and the numbers under it are within the conventions: gaps and numbers that are
/// not finite only where they are declared; numbers that count are of magnitude `most` at most.
///
/// # Errors
/// What is outside.
pub fn check(
    mask: &Array2<bool>,
    holes: bool,
    fields: &[(&str, &Array2<f64>)],
    values: MaskedValues,
    most: f64,
) -> std::result::Result<(), String> {
    if !holes && mask.rows().into_iter().any(has_hole) {
        return Err("the mask has a gap, and `holes` is false".to_owned());
    }
    for (name, array) in fields {
        for ((at, x), kept) in array.indexed_iter().zip(mask) {
            let fine =
                if *kept { x.abs() <= most } else { x.is_finite() || values == MaskedValues::Any };
            if !fine {
                return Err(format!("{name}[{}, {}] is {x}", at.0, at.1));
            }
        }
    }
    Ok(())
}

/// Whether a row's tokens have a gap between them.
pub fn has_hole<'a>(row: impl IntoIterator<Item = &'a bool>) -> bool {
    let row: Vec<bool> = row.into_iter().copied().collect();
    let ends = row.windows(2).filter(|pair| pair[0] && !pair[1]).count();
    let last = row.last() == Some(&true);
    ends + usize::from(last) > 1
}
