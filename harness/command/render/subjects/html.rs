//! A diagnosis as one HTML file: nothing in it is loaded from elsewhere, and no script.

use maud::{Markup, html};

use crate::render::html::{Tone, document, words};
use crate::render::subjects::spark;
use crate::render::subjects::text::{about, contracts, firing, outcome, place};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::{count, rounded, unquoted};
use shakedown_lint::report::{
    Diagnosis, Evidence, Figure, Finding, Kind, Metric, RuleStatus, Severity, StageVerdict,
    Subject, Verdict,
};

/// The page of a diagnosis.
pub(crate) fn page(diagnosis: &Diagnosis) -> String {
    let findings: usize = diagnosis.subjects.iter().map(|one| one.heads().count()).sum();
    let judged = diagnosis.subjects.iter().any(|subject| subject.judged() > 0);
    let (verdict, tone) = match (findings, judged) {
        (0, true) => ("These rules found nothing".to_owned(), Tone::Good),
        (0, false) => ("Nothing was checked".to_owned(), Tone::Quiet),
        (n, _) => (count(n as u64, "finding"), Tone::Bad),
    };
    let body = html! {
        a class="skip" href="#subjects" { "To the findings" }
        header class="page" {
            p class="product" { "shakedown diagnosis" }
            h1 class=(tone.class()) { (tone.mark()) " " (verdict) }
            p class="outcome" { (outcome(diagnosis)) }
        }
        main id="subjects" {
            @for (number, subject) in diagnosis.subjects.iter().enumerate() {
                (section(number, subject))
            }
        }
        footer {
            p {
                "A subject without findings is one in which these rules found nothing, which is "
                "no proof."
            }
        }
    };
    document(&verdict, &diagnosis.version, body)
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Findings => Tone::Bad,
        Verdict::NothingFound => Tone::Good,
        Verdict::Insufficient => Tone::Quiet,
    }
}

fn section(number: usize, subject: &Subject) -> Markup {
    let tone = tone(subject.verdict);
    html! {
        section class="subject" id={ "s" (number) } {
            h2 class=(tone.class()) {
                (tone.mark()) " " (subject.kind.name()) " · " code { (unquoted(&subject.name)) }
            }
            p class="about" { (unquoted(&about(subject))) }
            (settings(subject))
            (pipeline(subject))
            @for finding in subject.heads() {
                (self::finding(subject, finding))
            }
            @if subject.notes().next().is_some() {
                h3 { "Notes" }
                ul class="notes" {
                    @for note in subject.notes() {
                        li { code { (note.rule) } " " (words::prose(&note.found)) }
                    }
                }
            }
            (metrics(subject))
            (unknown(subject))
        }
    }
}

fn settings(subject: &Subject) -> Markup {
    html! {
        @if !subject.settings.is_empty() {
            details open[subject.kind == Kind::Config] {
                summary { "Settings" }
                table class="figures" {
                    thead { tr { th { "setting" } th { "value" } th { "from" } } }
                    tbody {
                        @for (id, setting) in &subject.settings {
                            tr {
                                td { code { (unquoted(id)) } }
                                td { (unquoted(&setting.value.to_string())) }
                                td { (unquoted(&setting.origin)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The stages in order, with how many of their rules fire.
fn pipeline(subject: &Subject) -> Markup {
    html! {
        nav aria-label={ "Pipeline of " (unquoted(&subject.name)) } {
            ol class="pipeline" {
                @for stage in Stage::JUDGED {
                    (stage_box(subject, *stage))
                }
            }
        }
    }
}

fn stage_box(subject: &Subject, stage: Stage) -> Markup {
    let rules = subject.rules.iter().filter(|rule| rule.stage == stage);
    let judged = |one: &RuleStatus| matches!(one, RuleStatus::Fires | RuleStatus::Quiet);
    let all = rules.filter(|rule| judged(&rule.status)).count();
    let (tone, sum) = match subject.stages.get(&stage) {
        Some(StageVerdict::Fires) => {
            (Tone::Bad, format!("{} of {all} rules", firing(subject, stage)))
        }
        Some(StageVerdict::Quiet) => (Tone::Good, format!("{all} rules quiet")),
        _ => (Tone::Quiet, "not judged".to_owned()),
    };
    html! {
        li class=(tone.class()) {
            p class="stage" { (tone.mark()) " " (stage.name()) }
            p class="sum" { (sum) }
        }
    }
}

fn finding(subject: &Subject, finding: &Finding) -> Markup {
    let also: Vec<&Finding> = subject.following(finding).collect();
    html! {
        article class="component bad" {
            h3 {
                (Tone::Bad.mark()) " " code { (finding.rule) }
                span class="place" { " " (finding.severity.name()) (unquoted(&place(finding))) }
            }
            section class="finding" { dl {
                dt { "found" }
                dd class="found" { (words::prose(&finding.found)) }
                @if !also.is_empty() {
                    dt { "also" }
                    dd {
                        @for other in also {
                            p {
                                code { (other.rule) } " follows from it: "
                                (words::prose(&other.found))
                            }
                        }
                    }
                }
                dt { "causes" }
                dd {
                    ol class="numbered" {
                        @for cause in &finding.causes {
                            li {
                                (words::prose(&cause.text))
                                @if let Some(setting) = &cause.setting {
                                    " (" code { (unquoted(setting)) } ")"
                                }
                            }
                        }
                    }
                }
                dt { "next" }
                dd { @for next in &finding.next { p { (words::prose(next)) } } }
                @if !finding.contracts.is_empty() {
                    dt { "contracts" }
                    dd { code { (contracts(finding)) } }
                }
                @if !finding.not_said.is_empty() {
                    dt { "not said" }
                    dd { (words::prose(&finding.not_said)) }
                }
                @if !finding.source.is_empty() {
                    dt { "source" }
                    dd { (words::prose(&finding.source)) }
                }
            } }
            (evidence(&finding.evidence))
        }
    }
}

fn evidence(evidence: &[Evidence]) -> Markup {
    html! {
        @if !evidence.is_empty() {
            table class="figures" {
                thead { tr { th { "of" } th { "figure" } th { "value" } th { "limit" } } }
                tbody {
                    @for one in evidence {
                        tr {
                            td { code { (unquoted(one.of.name())) } }
                            td { (unquoted(&one.statistic)) }
                            td { (figure(one.value)) }
                            td { (one.limit.map_or(String::new(), figure)) }
                        }
                    }
                }
            }
        }
    }
}

fn figure(Figure(x): Figure) -> String {
    rounded(x)
}

/// The metrics, those that findings rest on first, each with its picture.
fn metrics(subject: &Subject) -> Markup {
    let used = |metric: &&Metric| spark::rests_on(subject, &metric.id);
    let (first, others): (Vec<&Metric>, Vec<&Metric>) = subject.metrics.iter().partition(used);
    html! {
        @if !first.is_empty() {
            h3 { "Metrics of the findings" }
            div class="sparks" { @for metric in first { (spark::figure(subject, metric)) } }
        }
        @if !others.is_empty() {
            details {
                summary { (count(others.len() as u64, "other metric")) }
                div class="sparks" { @for metric in others { (spark::figure(subject, metric)) } }
            }
        }
    }
}

/// What was not judged, and what nothing is known about.
fn unknown(subject: &Subject) -> Markup {
    let judged = |status| matches!(status, RuleStatus::Fires | RuleStatus::Quiet);
    let unjudged: Vec<_> = subject.rules.iter().filter(|rule| !judged(rule.status)).collect();
    html! {
        @if !unjudged.is_empty() {
            details {
                summary { (count(unjudged.len() as u64, "rule")) " not judged" }
                ul class="notes" {
                    @for rule in unjudged {
                        li {
                            code { (rule.id) } " "
                            (words::prose(rule.reason.as_deref().unwrap_or_default()))
                        }
                    }
                }
            }
        }
        @if !subject.unknown_names.is_empty() {
            details {
                summary { (count(subject.unknown_names.len() as u64, "name")) " not known" }
                p { (words::names(&subject.unknown_names)) }
            }
        }
        @for warning in &subject.warnings {
            p class="warning" { (words::prose(warning)) }
        }
        @if subject.findings.iter().all(|one| one.severity == Severity::Note) {
            p class="about" { "No rule that could be judged found more than a note." }
        }
    }
}
