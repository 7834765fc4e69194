//! Comparing two outputs of one component: how laws say where they differ.

use ndarray::{Array2, ArrayViewD, CowArray, IxDyn, Slice};

use crate::contract::component::Returned;
use crate::contract::outcome::{Difference, Outcome, Stop, difference};
use crate::contract::probe::{AnyProbe, Probe};
use crate::contract::rows::Masked;
use crate::generate::axes::Axes;
use crate::value::record::{AnyRecord, floats, index, texts};
use crate::value::text::{found_for, pair};

/// The first column by which an output at unmasked tokens, or one without tokens, differs.
pub fn unmasked_difference<C: Masked>(
    probe: &mut Probe<'_, C>,
    changed: &C::Case,
    what: &str,
) -> Outcome {
    unmasked(&mut probe.any, C::AXES, C::mask(probe.case), changed, what)
}

fn unmasked(
    probe: &mut AnyProbe<'_>,
    axes: Axes,
    mask: &Array2<bool>,
    changed: &dyn AnyRecord,
    what: &str,
) -> Outcome {
    let before = probe.output()?;
    let returned = probe.call(changed)?;
    let after = outputs(&*returned.output);
    let expected_after = probe.expected_of(changed);
    for (name, before) in outputs(&*before.output) {
        let Some((_, after)) = after.iter().find(|(known, _)| *known == name) else { continue };
        let mut allowed = probe.related(name);
        let mut after = after.view();
        let mut allowed_after = probe.bounds_in(&expected_after, name);
        if let Some(axis) = axes.position(name, 'T') {
            let columns = Slice::from(..before.shape()[axis.index()]);
            after.slice_axis_inplace(axis, columns);
            allowed_after.slice_axis_inplace(axis, columns);
            // A token has several numbers where there are axes behind its own.
            let each = (allowed.len() / mask.len()).max(1);
            let kept = mask.iter().flat_map(|kept| std::iter::repeat_n(*kept, each));
            for (allowed, kept) in allowed.iter_mut().zip(kept) {
                *allowed = if kept { *allowed } else { f64::INFINITY };
            }
        }
        allowed += &allowed_after;
        allowed.zip_mut_with(&before, |allowed, x| {
            *allowed = if x.is_finite() { *allowed } else { f64::INFINITY };
        });
        if let Some(Difference { index, left, right, allowed }) =
            difference(&after, &before, &allowed)
        {
            let [text, right] = pair(left, right);
            let allowed = within(probe, name, allowed);
            let message = format!("{what} {name}{index} is {text}, before it was {right}{allowed}");
            return Err(Stop::number(message, left));
        }
    }
    Ok(())
}

/// How a message says how far apart two numbers may be: whole numbers are the same, or not.
fn within(probe: &AnyProbe<'_>, field: &str, allowed: f64) -> String {
    match probe.contract.whole().contains(&field) {
        true => String::new(),
        false => format!("; allowed difference {allowed:.1e}"),
    }
}

/// How a law about rows says what differs: where a number stands, both numbers and how far apart
/// they may be; where a text stands, and both texts.
pub struct Told<'a> {
    pub number: &'a dyn Fn(String, String, String, String) -> String,
    pub text: &'a dyn Fn(String, String) -> String,
}

/// Breaks a law where some rows of the whole differ from the output of a case of these rows.
pub fn rows_difference(
    probe: &mut AnyProbe<'_>,
    axes: Axes,
    whole: &Returned,
    part: &Returned,
    rows: &[usize],
    told: &Told<'_>,
) -> Outcome {
    let (whole, part) = (&*whole.output, &*part.output);
    let are_some = rows.len() < axes.length(&**probe.case, axes.row());
    for ((name, of_whole), (_, of_part)) in outputs(whole).into_iter().zip(outputs(part)) {
        if are_some && axes.position(name, axes.row()).is_none() {
            continue; // a number of the whole batch
        }
        let allowed = 2.0 * probe.related(name);
        let [of_whole, allowed] =
            [of_whole, allowed.view()].map(|array| take_rows(axes, name, array, rows));
        if let Some(Difference { index, left, right, allowed }) =
            difference(&of_part, &of_whole, &allowed)
        {
            let [text, right] = pair(left, right);
            let allowed = within(probe, name, allowed);
            let at = format!("{name}{index}");
            return Err(Stop::number((told.number)(at, text, right, allowed), left));
        }
    }
    match text_difference(axes, whole, part, Some(rows)) {
        Some((at, both)) => Err(Stop::Broken((told.text)(at, both).into())),
        None => Ok(()),
    }
}

/// Some rows of an output field; all of a field that has no rows.
fn take_rows<'a>(
    axes: Axes,
    field: &str,
    array: ArrayViewD<'a, f64>,
    rows: &[usize],
) -> CowArray<'a, f64, IxDyn> {
    match axes.position(field, axes.row()) {
        Some(axis) => array.select(axis, rows).into(),
        None => array.into(),
    }
}

/// The first text by which two outputs differ: where it stands, and both texts. `rows` says which
/// rows of the first one the second has, all of them where it is none.
pub fn text_difference(
    axes: Axes,
    whole: &dyn AnyRecord,
    part: &dyn AnyRecord,
    rows: Option<&[usize]>,
) -> Option<(String, String)> {
    for ((name, mut whole), (_, part)) in texts(whole).into_iter().zip(texts(part)) {
        if let (Some(rows), Some(axis)) = (rows, axes.position(name, axes.row())) {
            whole = whole.select(axis, rows);
        }
        let differ = part.indexed_iter().zip(&whole).find(|((_, part), whole)| *part != *whole);
        if let Some(((at, part), whole)) = differ {
            let at = format!("{name}{}", index(&at));
            return Some((at, found_for(part.as_deref(), whole.as_deref())));
        }
    }
    None
}

/// The float fields without the gradients, which the law `gradient` alone speaks about.
pub fn outputs(record: &dyn AnyRecord) -> Vec<(&'static str, ArrayViewD<'_, f64>)> {
    let mut fields = floats(record);
    fields.retain(|(name, _)| !name.starts_with("grad_"));
    fields
}
