//! One component at one place: its findings, its invariants, and what was exercised.

use maud::{Markup, html};

use super::about::About;
use super::{Tone, finding, words};
use shakedown_core::value::text::{count, unquoted};
use shakedown_engine::report::bugs::Bug;
use shakedown_engine::report::{ComponentReport, InvariantReport, InvariantStatus, Status};

/// What is said of a component; what passed is folded.
pub(super) fn article(number: usize, component: &ComponentReport) -> Markup {
    let about = About::contract(&component.contract);
    let tone = Tone::of(component.status);
    html! {
        article id={ "c" (number) } class={ "component " (tone.class()) } {
            details open[tone == Tone::Bad] {
                summary {
                    h3 {
                        (tone.mark()) " " (unquoted(&component.name))
                        " " span class="place" { (component.place) }
                    }
                    span class="gist" { (gist(component)) }
                }
                (head(component, &about))
                (warnings(component))
                @for (index, bug) in numbered(component) {
                    (finding::section(number, index, component, bug, &about))
                }
                (invariants(number, component, &about))
                (exercised(component, &about))
            }
        }
    }
}

/// The bugs, each with the index of its first finding.
fn numbered(component: &ComponentReport) -> Vec<(usize, Bug<'_>)> {
    let mut index = 0;
    let mut bugs = Vec::new();
    for bug in component.bugs() {
        bugs.push((index, bug));
        index += 1 + bug.also.len();
    }
    bugs
}

/// What came of it, in a few words.
fn gist(component: &ComponentReport) -> String {
    let findings = component.bugs().len() as u64;
    let warned = component.warnings.len() as u64;
    let mut text = match component.status {
        Status::Pass => format!("holds on {}", component.extent()),
        Status::Fail if findings > 0 => count(findings, "finding"),
        Status::Fail => "not as declared".to_owned(),
        Status::Error => "could not run".to_owned(),
        Status::Skipped => "skipped".to_owned(),
    };
    if warned > 0 {
        text.push_str(&format!(" · {}", count(warned, "warning")));
    }
    text
}

fn head(component: &ComponentReport, about: &About) -> Markup {
    let ComponentReport { contract, cases, calls, elapsed_ms, location, reason, .. } = component;
    html! {
        p class="about" {
            code { (unquoted(contract)) }
            @if !about.summary().is_empty() { " · " (words::prose(about.summary())) }
        }
        p class="about" {
            @if let Some(location) = location {
                "declared in " code { (unquoted(&location.file)) ":" (location.line) } " · "
            }
            (count(*cases, "case")) " · " (count(*calls, "call")) " · "
            span class="time" { (words::time(*elapsed_ms)) }
        }
        @if let Some(reason) = reason {
            pre class="reason" tabindex="0" { (unquoted(reason)) }
        }
    }
}

fn warnings(component: &ComponentReport) -> Markup {
    html! {
        @if !component.warnings.is_empty() {
            ul class="warnings" aria-label="Warnings" {
                @for warning in &component.warnings {
                    li { strong { "warning" } " " (words::prose(warning)) }
                }
            }
        }
    }
}

/// In the order of the contract, each with what it claims.
fn invariants(number: usize, component: &ComponentReport, about: &About) -> Markup {
    let with = |status| component.invariants.iter().filter(|one| one.status == status).count();
    let statuses = [
        InvariantStatus::Fail,
        InvariantStatus::Known,
        InvariantStatus::Pass,
        InvariantStatus::Vacuous,
        InvariantStatus::Skipped,
    ];
    let counts = statuses.map(|status| (with(status), word(status)));
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    html! {
        @if !component.invariants.is_empty() {
            details class="more" {
                summary { h4 { "Invariants" } " " span class="gist" { (counts.join(", ")) } }
                table class="invariants" {
                    thead {
                        tr { th scope="col" { "invariant" } th scope="col" { "what came of it" } }
                    }
                    tbody {
                        @for invariant in &component.invariants {
                            (invariant_row(number, component, invariant, about))
                        }
                    }
                }
            }
        }
    }
}

fn invariant_row(
    number: usize,
    component: &ComponentReport,
    invariant: &InvariantReport,
    about: &About,
) -> Markup {
    let InvariantReport { id, status, cases, reason } = invariant;
    let breaks = |bug: &Bug<'_>| bug.findings().any(|finding| finding.invariant == *id);
    let bugs: Vec<_> = numbered(component).into_iter().filter(|(_, bug)| breaks(bug)).collect();
    let finding = bugs.first().map(|(index, _)| *index);
    let class = match status {
        InvariantStatus::Pass => "good",
        InvariantStatus::Fail => "bad",
        InvariantStatus::Known => "warn",
        InvariantStatus::Skipped | InvariantStatus::Vacuous => "quiet",
    };
    let cases = count(*cases, "case");
    let came = match status {
        InvariantStatus::Pass => format!("held on {cases}"),
        // What is broken is not checked any further, what is declared to break and holds is.
        InvariantStatus::Fail if finding.is_none() => format!("held on {cases}"),
        InvariantStatus::Fail | InvariantStatus::Known => {
            format!("{} after {cases}", word(*status))
        }
        InvariantStatus::Skipped | InvariantStatus::Vacuous => word(*status).to_owned(),
    };
    html! {
        tr class=(class) {
            th scope="row" {
                @match finding {
                    Some(finding) => {
                        a href={ "#c" (number) "-f" (finding) } { code { (unquoted(id)) } }
                    }
                    None => code { (unquoted(id)) },
                }
                @if let Some(doc) = about.invariant(id) {
                    span class="claim" { (words::prose(&doc.claim())) }
                }
            }
            td {
                span class="status" { (came) }
                @for (index, bug) in bugs.iter().filter(|(_, bug)| bug.head.invariant != *id) {
                    span class="claim" {
                        "told at " a href={ "#c" (number) "-f" (index) } {
                            code { (unquoted(&bug.head.invariant)) }
                        }
                    }
                }
                @if let Some(reason) = reason { span class="claim" { (words::prose(reason)) } }
            }
        }
    }
}

fn word(status: InvariantStatus) -> &'static str {
    match status {
        InvariantStatus::Pass => "held",
        InvariantStatus::Fail => "broke",
        InvariantStatus::Known => "known to break",
        InvariantStatus::Skipped => "skipped",
        InvariantStatus::Vacuous => "without a case to speak about",
    }
}

/// How often each input class was generated.
fn exercised(component: &ComponentReport, about: &About) -> Markup {
    let classes = &component.classes;
    let reached = classes.values().filter(|cases| **cases > 0).count();
    let missed = classes.keys().filter(|class| component.never_reached(class)).count();
    html! {
        @if !classes.is_empty() {
            details class="more" open[missed > 0] {
                summary {
                    h4 { "What was exercised" } " "
                    span class="gist" {
                        (reached) " of " (classes.len()) " input class"
                        @if classes.len() != 1 { "es" }
                    }
                }
                table class="classes" {
                    thead {
                        tr {
                            th scope="col" { "input class" }
                            th scope="col" { "cases of " (component.cases) }
                        }
                    }
                    tbody {
                        @for (class, cases) in classes {
                            (class_row(component, class, *cases, about))
                        }
                    }
                }
            }
        }
    }
}

fn class_row(component: &ComponentReport, class: &str, cases: u64, about: &About) -> Markup {
    let missed = component.never_reached(class);
    let tone = match (cases, missed) {
        (_, true) => "warn",
        (0, false) => "quiet",
        _ => "",
    };
    let share = 100.0 * cases as f64 / component.cases.max(1) as f64;
    html! {
        tr class=(tone) {
            th scope="row" {
                code { (unquoted(class)) }
                span class="claim" { (words::prose(about.class(class))) }
            }
            td {
                @if missed {
                    span class="status" { "never reached" }
                } @else if cases == 0 {
                    span class="status" { "none" }
                } @else {
                    svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none"
                        aria-hidden="true" {
                        rect class="all" width="100" height="8" {}
                        rect class="part" width={ (format!("{share:.1}")) } height="8" {}
                    }
                    span class="count" { (cases) }
                }
            }
        }
    }
}
