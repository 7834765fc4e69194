//! A diagnosis as text for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;
use shakedown_engine::report::text::Paint;
use shakedown_lint::report::{
    Diagnosis, Finding, RuleStatus, Severity, StageVerdict, Subject, Verdict,
};

/// Writes all of it; with every rule that was not judged where `verbose`.
pub(crate) fn write(
    to: &mut dyn Write,
    diagnosis: &Diagnosis,
    paint: Paint,
    verbose: bool,
) -> io::Result<()> {
    for subject in &diagnosis.subjects {
        write_subject(to, subject, paint, verbose)?;
    }
    write_shared(to, diagnosis)?;
    writeln!(to, "{}", summary(diagnosis, paint))
}

fn write_subject(
    to: &mut dyn Write,
    subject: &Subject,
    paint: Paint,
    verbose: bool,
) -> io::Result<()> {
    let mark = match subject.verdict {
        Verdict::Findings => paint.bad("✗"),
        Verdict::NothingFound => paint.good("✓"),
        Verdict::Insufficient => paint.aside("–"),
    };
    let name = paint.strong(&subject.name);
    writeln!(to, "{mark} {} · {name} · {}", subject.kind.name(), about(subject))?;
    if let Some(settings) = settings(subject) {
        writeln!(to, "  {}", paint.aside(&settings))?;
    }
    for finding in subject.heads() {
        writeln!(to)?;
        write_finding(to, subject, finding, paint)?;
    }
    writeln!(to, "\n  stages     {}", stages(subject))?;
    write_unjudged(to, subject, paint, verbose)?;
    for note in subject.notes() {
        writeln!(to, "{}", paint.aside(&format!("  note       {}: {}", note.rule, note.found)))?;
    }
    for warning in &subject.warnings {
        writeln!(to, "{}", paint.aside(&format!("  warning    {warning}")))?;
    }
    Ok(())
}

/// What it is, as far as that is known: `verl · JSON lines · 160 rows, steps 1-160 · 31 metrics`.
pub(super) fn about(subject: &Subject) -> String {
    let mut parts: Vec<String> = subject.of_library().into_iter().collect();
    parts.push(subject.format.clone());
    let rows = match subject.kind {
        shakedown_lint::report::Kind::Config => count(subject.rows, "setting"),
        _ => count(subject.rows, "row"),
    };
    let steps = subject.steps.map_or(String::new(), |[from, to]| format!(", steps {from}-{to}"));
    parts.push(rows + &steps);
    if !subject.metrics.is_empty() {
        parts.push(count(subject.metrics.len() as u64, "metric"));
    }
    if !subject.unknown_names.is_empty() {
        parts.push(format!("{} not known", count(subject.unknown_names.len() as u64, "name")));
    }
    parts.join(" · ")
}

/// The settings that say most about a run, in the order in which people name them.
const TOLD: [&str; 8] = [
    "algorithm",
    "group",
    "lr",
    "kl.loss",
    "kl.reward",
    "batch.prompts",
    "length.completion",
    "temperature",
];

fn settings(subject: &Subject) -> Option<String> {
    let told = TOLD.iter().filter_map(|id| {
        let setting = subject.settings.get(*id)?;
        let value = setting.value.as_str().map_or(setting.value.to_string(), str::to_owned);
        Some((format!("{id} {value}"), setting.origin.split(':').next().unwrap_or_default()))
    });
    let (texts, mut origins): (Vec<String>, Vec<&str>) = told.unzip();
    origins.sort_unstable();
    origins.dedup();
    (!texts.is_empty()).then(|| format!("{}   (from {})", texts.join(" · "), origins.join(", ")))
}

fn write_finding(
    to: &mut dyn Write,
    subject: &Subject,
    finding: &Finding,
    paint: Paint,
) -> io::Result<()> {
    let rule = paint.strong(&finding.rule);
    let (mark, stage) = (paint.bad("✗"), finding.stage.name());
    writeln!(to, "  {mark} {stage:<11} {rule}   {}{}", finding.severity.name(), place(finding))?;
    let mut line = |label: &str, text: &str| -> io::Result<()> {
        let mut lines = text.lines();
        let label = paint.aside(&format!("{label:<10}"));
        writeln!(to, "    {label} {}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|more| writeln!(to, "               {more}"))
    };
    line("found", &finding.found)?;
    let following: Vec<String> = subject.following(finding).map(also).collect();
    if !following.is_empty() {
        line("also", &following.join("\n"))?;
    }
    if !finding.causes.is_empty() {
        line("causes", &causes(finding))?;
    }
    if !finding.next.is_empty() {
        line("next", &finding.next.join("\n"))?;
    }
    if !finding.contracts.is_empty() {
        line("contracts", &contracts(finding))?;
    }
    if !finding.not_said.is_empty() {
        line("not said", &finding.not_said)?;
    }
    Ok(())
}

/// Where a finding is: ` · steps 34-160`, ` · train.sh:12`.
pub(super) fn place(finding: &Finding) -> String {
    let steps = finding.steps.map(|[from, to]| match from == to {
        true => format!(" · step {from}"),
        false => format!(" · steps {from}-{to}"),
    });
    let line = finding.location.as_ref().map(|at| format!(" · {}:{}", at.file, at.line));
    steps.unwrap_or_default() + &line.unwrap_or_default()
}

fn also(finding: &Finding) -> String {
    format!("{} ({}) follows from it: {}", finding.rule, finding.severity.name(), finding.found)
}

pub(super) fn causes(finding: &Finding) -> String {
    let causes = finding.causes.iter().enumerate().map(|(index, cause)| {
        let setting = cause.setting.as_ref().map_or(String::new(), |id| format!(" ({id})"));
        format!("{} {}{setting}", index + 1, cause.text)
    });
    causes.collect::<Vec<_>>().join("\n")
}

/// The contracts with their invariants: `policy-loss/odd, policy-loss/linear, kl-estimate`.
pub(super) fn contracts(finding: &Finding) -> String {
    let named = finding.contracts.iter().flat_map(|hint| match &hint.invariants[..] {
        [] => vec![hint.contract.clone()],
        ids => ids.iter().map(|id| format!("{}/{id}", hint.contract)).collect(),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// All stages in pipeline order, whatever was found: `reward ✓ 5   advantage ✗ 1 of 5`.
fn stages(subject: &Subject) -> String {
    let stages = Stage::JUDGED.iter().map(|stage| {
        let of = |status| {
            let rules = subject.rules.iter();
            rules.filter(|one| one.stage == *stage && one.status == status).count()
        };
        let (fires, all) = (firing(subject, *stage), of(RuleStatus::Fires) + of(RuleStatus::Quiet));
        match subject.stages.get(stage) {
            Some(StageVerdict::Fires) => format!("{} ✗ {fires} of {all}", stage.name()),
            Some(StageVerdict::Quiet) => format!("{} ✓ {all}", stage.name()),
            _ => format!("{} –", stage.name()),
        }
    });
    stages.collect::<Vec<_>>().join("   ")
}

/// How many rules of a stage fire above a note.
pub(super) fn firing(subject: &Subject, stage: Stage) -> usize {
    let above = subject.findings.iter().filter(|one| one.severity > Severity::Note);
    let mut rules: Vec<&str> =
        above.filter(|one| one.stage == stage).map(|one| one.rule.as_str()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules.len()
}

/// The rules that were not judged, by the reason.
fn write_unjudged(
    to: &mut dyn Write,
    subject: &Subject,
    paint: Paint,
    verbose: bool,
) -> io::Result<()> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for rule in &subject.rules {
        if !matches!(rule.status, RuleStatus::Fires | RuleStatus::Quiet) {
            reasons.entry(rule.reason.as_deref().unwrap_or("")).or_default().push(&rule.id);
        }
    }
    let all: usize = reasons.values().map(Vec::len).sum();
    if all == 0 {
        return Ok(());
    }
    if !verbose {
        let rules = count(all as u64, "rule");
        let text = format!("  not judged {rules}: --verbose says which, and what each needs");
        return writeln!(to, "{}", paint.aside(&text));
    }
    for (index, (why, ids)) in reasons.iter().enumerate() {
        let label = if index == 0 { "not judged" } else { "" };
        let text = format!("  {label:<10} {} ({why})", ids.join(", "));
        writeln!(to, "{}", paint.aside(&text))?;
    }
    Ok(())
}

/// Of several runs of one library, in how many each rule fires.
fn write_shared(to: &mut dyn Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for subject in &diagnosis.subjects {
        let mut rules: Vec<&str> = subject.heads().map(|finding| finding.rule.as_str()).collect();
        rules.dedup();
        rules.iter().for_each(|rule| *counts.entry(rule).or_default() += 1);
    }
    let all = diagnosis.subjects.len();
    let shared: Vec<String> = counts
        .iter()
        .filter(|(_, found)| **found > 1)
        .map(|(rule, found)| format!("{rule} in {found} of {all}"))
        .collect();
    match shared.is_empty() {
        true => Ok(()),
        false => writeln!(to, "in several: {}", shared.join(", ")),
    }
}

/// `1 finding above a note, 37 rules quiet, 9 not judged`.
pub(super) fn outcome(diagnosis: &Diagnosis) -> String {
    let sum = |of: &dyn Fn(&Subject) -> usize| diagnosis.subjects.iter().map(of).sum::<usize>();
    let findings = sum(&|subject| subject.heads().count());
    let quiet = sum(&|subject| subject.with(RuleStatus::Quiet));
    let unjudged = sum(&|subject| subject.rules.len() - subject.judged());
    let rules = count(quiet as u64, "rule");
    let findings = count(findings as u64, "finding");
    format!("{findings} above a note, {rules} quiet, {unjudged} not judged")
}

fn summary(diagnosis: &Diagnosis, paint: Paint) -> String {
    let outcome = outcome(diagnosis);
    let found = diagnosis.subjects.iter().any(|subject| subject.verdict == Verdict::Findings);
    let judged = diagnosis.subjects.iter().any(|subject| subject.judged() > 0);
    let few = diagnosis.subjects.iter().any(|one| one.verdict == Verdict::Insufficient);
    match (found, judged) {
        (true, _) => paint.bad(&outcome),
        (false, false) => paint.aside(&format!("nothing was checked: {outcome}")),
        (false, true) if few => {
            paint.aside(&format!("{outcome}; too little to say that all is well"))
        }
        (false, true) => paint.good(&format!("{outcome}: these rules found nothing")),
    }
}
