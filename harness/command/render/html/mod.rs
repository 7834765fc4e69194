//! The report as one HTML file for people: nothing in it is loaded from elsewhere, and no script.

mod about;
mod case;
mod component;
mod finding;
mod plot;
pub(crate) mod words;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::{count, unquoted};
use shakedown_engine::report::{ComponentReport, ExitCode, Report, Status};

/// What a browser may load for the page: its own style, and nothing from anywhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("report.css");

/// The page of a report.
pub(crate) fn page(report: &Report) -> String {
    let (verdict, tone) = verdict(report);
    let body = html! {
        header class="page" {
            p class="product" { "shakedown report" }
            h1 class=(tone.class()) { (tone.mark()) " " (verdict) }
            p class="outcome" { (report.outcome()) }
            (facts(report))
        }
        (pipeline(report))
        main id="components" {
            @for stage in Stage::ALL {
                (stage_section(report, *stage))
            }
        }
        footer {
            p {
                "A component that passes agrees with its contract on the cases tried, "
                "which is no proof."
            }
        }
    };
    let skip = html! { a class="skip" href="#components" { "To the components" } };
    document(&verdict, &report.version, html! { (skip) (body) })
}

/// A whole page: nothing in it is loaded from elsewhere.
pub(crate) fn document(title: &str, version: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "shakedown " (unquoted(version)) };
                title { (title) " · shakedown" }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// How good a thing is, for its colour, its mark and its word: never only the colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    /// Neither.
    Quiet,
    /// Right.
    Good,
    /// Wrong.
    Bad,
}

impl Tone {
    fn of(status: Status) -> Tone {
        match status {
            Status::Pass => Tone::Good,
            Status::Fail | Status::Error => Tone::Bad,
            Status::Skipped => Tone::Quiet,
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Quiet => "quiet",
            Tone::Good => "good",
            Tone::Bad => "bad",
        }
    }

    pub(crate) fn mark(self) -> Markup {
        let mark = match self {
            Tone::Quiet => "–",
            Tone::Good => "✓",
            Tone::Bad => "✗",
        };
        html! { span class="mark" aria-hidden="true" { (mark) } }
    }
}

fn verdict(report: &Report) -> (String, Tone) {
    let findings: usize = report.components.iter().map(|c| c.bugs().len()).sum();
    match report.exit_code() {
        _ if findings > 0 => (count(findings as u64, "finding"), Tone::Bad),
        ExitCode::CouldNotRun => ("Could not run".to_owned(), Tone::Bad),
        ExitCode::Findings => ("Not as declared".to_owned(), Tone::Bad),
        ExitCode::NothingChecked => ("Nothing was checked".to_owned(), Tone::Quiet),
        ExitCode::Interrupted => ("Interrupted".to_owned(), Tone::Quiet),
        ExitCode::AllHold => ("Everything holds".to_owned(), Tone::Good),
    }
}

/// What ran.
fn facts(report: &Report) -> Markup {
    let located = report.components.iter().filter_map(|component| component.location.as_ref());
    let mut manifests: Vec<&str> = located.map(|location| &*location.file).collect();
    manifests.dedup();
    let total = |of: fn(&ComponentReport) -> u64| report.components.iter().map(of).sum::<u64>();
    let [cases, calls] = [total(|component| component.cases), total(|component| component.calls)];
    html! {
        dl class="facts" {
            @if !manifests.is_empty() {
                div {
                    dt { "manifest" }
                    dd { @for file in manifests { code { (unquoted(file)) } " " } }
                }
            }
            div { dt { "seed" } dd { (report.seed) } }
            @if let Some(shard) = report.shard {
                div { dt { "shard" } dd { (shard) } }
            }
            div { dt { "cases" } dd { (words::thousands(cases)) } }
            div { dt { "calls" } dd { (words::thousands(calls)) } }
            div { dt { "time" } dd class="time" { (words::time(report.elapsed_ms)) } }
            div { dt { "shakedown" } dd { (unquoted(&report.version)) } }
        }
    }
}

/// The components of a stage, each with its number in the report.
fn of_stage(report: &Report, stage: Stage) -> Vec<(usize, &ComponentReport)> {
    let numbered = report.components.iter().enumerate();
    numbered.filter(|(_, component)| component.stage == stage).collect()
}

/// The stages in order, with what held and what broke.
fn pipeline(report: &Report) -> Markup {
    html! {
        nav aria-labelledby="pipeline" {
            h2 id="pipeline" { "Pipeline" }
            ol class="pipeline" {
                @for stage in Stage::ALL {
                    (stage_box(*stage, &of_stage(report, *stage)))
                }
            }
        }
    }
}

fn stage_box(stage: Stage, components: &[(usize, &ComponentReport)]) -> Markup {
    let tones = components.iter().map(|(_, component)| Tone::of(component.status));
    let Some(tone) = tones.max() else {
        return html! {
            li class="uncovered" {
                p class="stage" { (stage.name()) }
                p class="sum" { "not covered" }
            }
        };
    };
    let with = |tone| components.iter().filter(|(_, c)| Tone::of(c.status) == tone).count();
    let parts = [(Tone::Bad, "broke"), (Tone::Good, "held"), (Tone::Quiet, "skipped")];
    let parts = parts.map(|(tone, word)| (with(tone), word));
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    html! {
        li class=(tone.class()) {
            p class="stage" {
                a href={ "#" (stage.name()) } { (tone.mark()) " " (stage.name()) }
            }
            p class="sum" { (parts.join(", ")) }
            ul {
                @for (number, component) in components {
                    @let tone = Tone::of(component.status);
                    li class=(tone.class()) {
                        a href={ "#c" (number) } {
                            (tone.mark()) " " (unquoted(&component.name))
                            " " span class="place" {
                                (component.place)
                                @if !component.findings.is_empty() {
                                    " · " (component.bugs().len())
                                    span class="heard" { " findings" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn stage_section(report: &Report, stage: Stage) -> Markup {
    let components = of_stage(report, stage);
    html! {
        @if !components.is_empty() {
            section aria-labelledby=(stage.name()) {
                h2 id=(stage.name()) { (stage.name()) }
                @for (number, component) in components {
                    (component::article(number, component))
                }
            }
        }
    }
}
