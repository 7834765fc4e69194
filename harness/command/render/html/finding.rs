//! One bug: claim, numbers, smallest case, diagnosis, what it breaks besides, and how to go on.

use maud::{Markup, html};

use super::about::About;
use super::{case, plot, words};
use shakedown_core::value::text::{count, unquoted};
use shakedown_engine::report::bugs::Bug;
use shakedown_engine::report::text::diagnosis_text;
use shakedown_engine::report::{Classes, ComponentReport, Diagnosis, Finding};

/// The section of a bug whose first finding has this index among those of the component.
pub(super) fn section(
    number: usize,
    index: usize,
    component: &ComponentReport,
    bug: Bug<'_>,
    about: &About,
) -> Markup {
    let id = format!("c{number}-f{index}");
    let finding = bug.head;
    html! {
        section class="finding" aria-labelledby=(id) {
            h4 id=(id) { code { (unquoted(&finding.invariant)) } }
            p class="about" {
                "broken by case " (finding.cases_to_failure) ", shrunk in "
                (count(finding.shrink_calls, "call"))
                " · " (finding.pitfall.id()) ": " (finding.pitfall.meaning())
            }
            dl {
                (shown(finding, about))
                @for diagnosis in &finding.diagnosis {
                    dt { "diagnosis" }
                    dd class="diagnosis" { (self::diagnosis(number, component, diagnosis)) }
                }
                @if let Some(region) = &finding.region {
                    dt { "wrong" }
                    dd class="region" { (words::prose(region)) }
                }
                @if !bug.also.is_empty() {
                    dt { "breaks too" }
                    dd class="also" {
                        @for (after, also) in bug.also.iter().enumerate() {
                            (other(number, index + 1 + after, component, bug.head, also, about))
                        }
                    }
                }
                (classes(&finding.classes))
                @for (label, command) in finding.commands(&component.contract) {
                    dt { (label) }
                    dd { pre class="command" { code { (unquoted(&command)) } } }
                }
            }
            (why(finding, about))
        }
    }
}

/// The claim, what was found, and on which case.
fn shown(finding: &Finding, about: &About) -> Markup {
    let (found, more) = finding.found.split_once('\n').unwrap_or((&finding.found, ""));
    html! {
        dt { "claim" }
        dd class="claimed" { (words::prose(&finding.claim)) }
        dt { "found" }
        dd class="found" {
            p { (unquoted(found)) }
            @if !more.is_empty() { pre class="wide" tabindex="0" { (unquoted(more)) } }
        }
        dt { "case" }
        dd {
            @if let Some(table) = case::table(finding, about) { (table) }
            pre class="wide" tabindex="0" { (unquoted(&finding.shown)) }
        }
    }
}

/// Another invariant that a bug breaks, folded to its name.
fn other(
    number: usize,
    index: usize,
    component: &ComponentReport,
    head: &Finding,
    finding: &Finding,
    about: &About,
) -> Markup {
    let id = format!("c{number}-f{index}");
    let is_told = |one: &Diagnosis| head.diagnosis.iter().any(|told| told.fault == one.fault);
    let why = finding.why(&component.contract).1;
    html! {
        details class="too" aria-labelledby=(id) {
            summary { h5 id=(id) { code { (unquoted(&finding.invariant)) } } }
            p class="about" {
                "broken by case " (finding.cases_to_failure) ", shrunk in "
                (count(finding.shrink_calls, "call"))
            }
            dl {
                (shown(finding, about))
                @for diagnosis in finding.diagnosis.iter().filter(|one| !is_told(one)) {
                    dt { "diagnosis" }
                    dd class="diagnosis" { (self::diagnosis(number, component, diagnosis)) }
                }
                (classes(&finding.classes))
                dt { "why" }
                dd { pre class="command" { code { (unquoted(&why)) } } }
            }
        }
    }
}

/// In words, and where the points are with this finding, in a picture.
fn diagnosis(number: usize, component: &ComponentReport, diagnosis: &Diagnosis) -> Markup {
    let has_points = |one: &Diagnosis| !one.points.is_empty() || !one.texts.is_empty();
    let shows = |finding: &Finding| {
        finding.diagnosis.iter().any(|one| one.fault == diagnosis.fault && has_points(one))
    };
    html! {
        p { (words::prose(&diagnosis_text(diagnosis))) }
        @if has_points(diagnosis) {
            (plot::numbers(diagnosis))
            (plot::texts(diagnosis))
        } @else if let Some(shown) = component.findings.iter().position(shows) {
            p class="about" {
                "How the two agree is shown with "
                a href={ "#c" (number) "-f" (shown) } {
                    code { (unquoted(&component.findings[shown].invariant)) }
                }
            }
        }
    }
}

fn classes(Classes { fails, holds }: &Classes) -> Markup {
    html! {
        @if !fails.is_empty() {
            dt { "fails on" }
            dd { (words::names(fails)) }
        }
        @if !holds.is_empty() {
            dt { "holds on" }
            dd { (words::names(holds)) }
        }
    }
}

/// What the invariant's documentation says besides its claim.
fn why(finding: &Finding, about: &About) -> Markup {
    html! {
        @if let Some(doc) = about.invariant(&finding.invariant) {
            details class="more" {
                summary { "Why it matters, when it does not hold, an example" }
                @for heading in ["Why it matters", "Does not hold for", "Bugs it has caught"] {
                    h5 { (heading) }
                    @for paragraph in doc.section(heading).lines().filter(|line| !line.is_empty()) {
                        p { (words::prose(paragraph)) }
                    }
                }
                @if let Some(example) = doc.example() {
                    h5 { "Example" }
                    @if !example.of.is_empty() { p { (words::prose(&example.of)) } }
                    (diff(&example.diff))
                }
            }
        }
    }
}

/// Wrong lines and right ones.
fn diff(lines: &[String]) -> Markup {
    html! {
        pre class="wide diff" {
            @for line in lines {
                @match line.as_bytes() {
                    [b'-', ..] => { del { (line) } }
                    [b'+', ..] => { ins { (line) } }
                    _ => { span { (line) } }
                }
            }
        }
    }
}
