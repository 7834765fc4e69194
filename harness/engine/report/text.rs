//! The report as text for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::InvariantReport;
use super::bugs::Bug;
use super::{ComponentReport, Diagnosis, Finding, InvariantStatus, Report, Status, Strength};
use shakedown_core::value::text::{count, for_shell, harmless};

/// The styles of the report; empty ones print no escape codes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    good: Style,
    bad: Style,
    aside: Style,
    strong: Style,
}

impl Paint {
    /// Colours for a terminal.
    pub fn colours() -> Paint {
        Paint {
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            aside: Style::new().dimmed(),
            strong: Style::new().bold(),
        }
    }

    /// A text that says that something is right.
    pub fn good(self, text: &str) -> String {
        Paint::write(self.good, text)
    }

    /// A text that says that something is wrong.
    pub fn bad(self, text: &str) -> String {
        Paint::write(self.bad, text)
    }

    /// A text that is said aside.
    pub fn aside(self, text: &str) -> String {
        Paint::write(self.aside, text)
    }

    /// A text to look at first.
    pub fn strong(self, text: &str) -> String {
        Paint::write(self.strong, text)
    }

    fn write(style: Style, text: &str) -> String {
        format!("{style}{text}{style:#}")
    }
}

/// Writes what a run says of one component.
///
/// # Errors
/// The writer's.
pub fn write_component(
    to: &mut dyn Write,
    report: &ComponentReport,
    paint: Paint,
) -> io::Result<()> {
    write_report(to, report, paint, false)
}

/// The same, with the findings of each bug one by one.
///
/// # Errors
/// The writer's.
pub fn write_every_finding(
    to: &mut dyn Write,
    report: &ComponentReport,
    paint: Paint,
) -> io::Result<()> {
    write_report(to, report, paint, true)
}

fn write_report(
    to: &mut dyn Write,
    report: &ComponentReport,
    paint: Paint,
    every: bool,
) -> io::Result<()> {
    let ComponentReport { name, place, status, .. } = report;
    let title = Paint::write(paint.strong, &harmless(name));
    let head = format!("{} · {title} · {place}", report.stage.name());
    let with = |status| report.invariants.iter().filter(|i| i.status == status).count();
    match status {
        Status::Pass => {
            let (held, known) = (with(InvariantStatus::Pass), with(InvariantStatus::Known));
            let hold = if held == 1 { "holds" } else { "hold" };
            let held = format!("{} {hold}", count(held as u64, "invariant"));
            let known = if known > 0 { format!(", {known} known to fail") } else { String::new() };
            let mark = Paint::write(paint.good, "✓");
            writeln!(to, "{mark} {head}   {held} on {}{known}", report.extent())?;
        }
        Status::Skipped => {
            let reason = report.reason.as_deref().unwrap_or("");
            writeln!(
                to,
                "{}",
                Paint::write(paint.aside, &format!("- {head}   skipped: {reason}"))
            )?;
        }
        Status::Error => {
            let mark = Paint::write(paint.bad, "!");
            writeln!(to, "{mark} {head}   could not run")?;
            let reason = report.reason.as_deref().unwrap_or("");
            reason.lines().try_for_each(|line| writeln!(to, "    {line}"))?;
        }
        Status::Fail => writeln!(to, "{} {head}", Paint::write(paint.bad, "✗"))?,
    }
    for bug in report.bugs() {
        write_bug(to, &report.contract, bug, paint)?;
        for other in bug.also.iter().filter(|_| every) {
            write_other(to, &report.contract, bug, other, paint)?;
        }
    }
    for invariant in &report.invariants {
        if let (InvariantStatus::Known, Some(reason)) = (invariant.status, &invariant.reason) {
            let line = format!("  known    {} is known to fail: {reason}", invariant.id);
            writeln!(to, "{}", Paint::write(paint.aside, &line))?;
        }
    }
    for warning in &report.warnings {
        writeln!(to, "{}", Paint::write(paint.aside, &format!("  warning  {warning}")))?;
    }
    Ok(())
}

impl ComponentReport {
    /// What the text report says of an invariant that failed, and of which bugs that tells.
    pub fn failure_text(&self, invariant: &InvariantReport) -> String {
        let mut text = Vec::new();
        for bug in self.bugs() {
            for finding in bug.findings().filter(|one| one.invariant == invariant.id) {
                writeln!(text, "{}", self.which_bug(finding)).expect("memory can be written");
                let written = match std::ptr::eq(finding, bug.head) {
                    true => write_bug(&mut text, &self.contract, bug, Paint::default()),
                    false => write_other(&mut text, &self.contract, bug, finding, Paint::default()),
                };
                written.expect("memory can be written");
            }
        }
        match text.is_empty() {
            true => invariant.reason.clone().unwrap_or_default(),
            false => String::from_utf8_lossy(&text).into_owned(),
        }
    }

    /// The invariants that failed and of which there is no finding, with the reason.
    pub fn not_as_declared(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.invariants.iter().filter(|one| one.status == InvariantStatus::Fail);
        let told = |id: &str| self.findings.iter().any(|finding| finding.invariant == id);
        failed
            .filter(move |one| !told(&one.id))
            .map(|one| (&*one.id, one.reason.as_deref().unwrap_or_default()))
    }
}

impl Bug<'_> {
    /// What there is to say of it in a few lines, what was found in the first.
    pub fn summary(self) -> String {
        let Finding { found, again, claim, shown, diagnosis, region, replay, .. } = self.head;
        let again = again.as_ref().map_or_else(String::new, |again| format!("\n{again}"));
        let mut text = format!("{found}{again}\nclaim: {claim}\ncase: {shown}");
        for diagnosis in diagnosis {
            text.push_str(&format!("\ndiagnosis: {}", diagnosis_text(diagnosis)));
        }
        if let Some(region) = region {
            text.push_str(&format!("\nwrong: {region}"));
        }
        if !self.also.is_empty() {
            text.push_str(&format!("\nbreaks too: {}", self.breaks_too().join(", ")));
        }
        text + "\nreplay: " + replay
    }
}

fn write_bug(to: &mut dyn Write, contract: &str, bug: Bug<'_>, paint: Paint) -> io::Result<()> {
    let breaks_too = bug.breaks_too().join(", ");
    let beside = (!bug.also.is_empty()).then_some(("breaks too", &*breaks_too));
    write_finding(to, bug.head, "", beside, &bug.head.commands(contract), paint)
}

/// Writes a finding of a bug that is told at another one.
fn write_other(
    to: &mut dyn Write,
    contract: &str,
    bug: Bug<'_>,
    finding: &Finding,
    paint: Paint,
) -> io::Result<()> {
    let same = format!("the same bug as `{}`, ", bug.head.invariant);
    write_finding(to, finding, &same, None, &[finding.why(contract)], paint)
}

fn write_finding(
    to: &mut dyn Write,
    finding: &Finding,
    same: &str,
    beside: Option<(&str, &str)>,
    commands: &[(&str, String)],
    paint: Paint,
) -> io::Result<()> {
    let Finding { invariant, cases_to_failure, shrink_calls, .. } = finding;
    let mark = Paint::write(paint.bad, "✗");
    let id = Paint::write(paint.strong, invariant);
    writeln!(
        to,
        "  {mark} {id}   {same}broken by case {cases_to_failure}, shrunk in {}",
        count(*shrink_calls, "call")
    )?;
    let mut line = |label: &str, text: &str| -> io::Result<()> {
        let label = Paint::write(paint.aside, &format!("{label:<10}"));
        let mut lines = text.lines();
        writeln!(to, "    {label} {}", lines.next().unwrap_or(""))?;
        lines.try_for_each(|more| writeln!(to, "               {more}"))
    };
    let mut line = |label: &str, text: &str| line(label, &harmless(text));
    if let Some(again) = &finding.again {
        line("again", again)?;
    }
    line("claim", &finding.claim)?;
    line("found", &finding.found)?;
    line("case", &finding.shown)?;
    for diagnosis in &finding.diagnosis {
        line("diagnosis", &diagnosis_text(diagnosis))?;
    }
    if let Some(region) = &finding.region {
        line("wrong", region)?;
    }
    if let Some((label, text)) = beside {
        line(label, text)?;
    }
    let super::Classes { fails, holds } = &finding.classes;
    if !fails.is_empty() {
        let every = holds.is_empty() && fails.len() > 5;
        line(
            "fails on",
            &if every { "every class of input".to_owned() } else { fails.join(", ") },
        )?;
    }
    if !holds.is_empty() {
        line("holds on", &holds.join(", "))?;
    }
    commands.iter().try_for_each(|(label, command)| line(label, command))
}

impl Finding {
    /// The commands to go on with, each with a word for what it is for.
    pub fn commands(&self, contract: &str) -> Vec<(&'static str, String)> {
        let mut commands = Vec::new();
        if let Some(path) = &self.case_file {
            commands.push(("replay", self.replay.clone()));
            if self.again.is_none() {
                let path = for_shell(path);
                commands.push(("keep", format!("shakedown adopt {path} --why \"…\"")));
            }
        }
        commands.push(self.why(contract));
        commands
    }

    /// The command that says why the invariant matters.
    pub fn why(&self, contract: &str) -> (&'static str, String) {
        ("why", format!("shakedown explain {contract}/{}", self.invariant))
    }
}

/// What a diagnosis says, in a sentence: the stronger it is, the shorter.
pub fn diagnosis_text(diagnosis: &Diagnosis) -> String {
    let Diagnosis { fault, matches, of, explains, summary, told, strength, alike, .. } = diagnosis;
    let summary = match summary.as_str() {
        "" => String::new(),
        summary if told.contains(&format!("`{fault}`")) => format!(": {summary}"),
        summary => format!(": the bug `{fault}`, {summary}"),
    };
    if diagnosis.by_outcomes {
        let cases = format!("{matches} of {of} cases");
        return match &*diagnosis.summary {
            "" => format!("breaks what it would if {told}, on {cases}"),
            summary => format!("breaks what `{fault}` breaks on {cases}: {summary}"),
        };
    }
    let told = if told.is_empty() { format!("it had the bug `{fault}`") } else { told.clone() };
    let cases = format!("{matches} of {of} cases");
    let explains = format!("{:.0} % of the wrong outputs", 100.0 * explains);
    let beside = match &alike[..] {
        [] => String::new(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!(" (the same as {})", names.join(", "))
        }
    };
    match strength {
        Strength::Exactly => format!("behaves exactly as if {told}, on {cases}{summary}{beside}"),
        Strength::Region if matches == of => {
            format!("behaves as if {told}, on {cases}; this explains {explains}{summary}{beside}")
        }
        _ if *matches == 0 => {
            format!(
                "does a part of what it would if {told}; this explains {explains}{summary}{beside}"
            )
        }
        _ => format!("partly as if {told}, on {cases}; this explains {explains}{summary}{beside}"),
    }
}

/// Writes the last lines of a report.
///
/// # Errors
/// The writer's.
pub fn write_summary(to: &mut dyn Write, report: &Report, paint: Paint) -> io::Result<()> {
    let shard = report.shard.map_or(String::new(), |shard| format!(", shard {shard}"));
    if report.components.is_empty() && report.shard.is_some() {
        writeln!(to, "nothing to check{shard}: there are fewer components and places than shards")?;
        return Ok(());
    }
    let findings: usize = report.components.iter().map(|c| c.bugs().len()).sum();
    let cases: u64 = report.components.iter().map(|c| c.cases).sum();
    let bad = report.with(Status::Fail) + report.with(Status::Error) > 0;
    if report.is_interrupted() {
        writeln!(to, "interrupted: what follows is what was done until then")?;
    }
    let style = if bad { paint.bad } else { paint.good };
    let line = format!(
        "{}, {} on {} (seed {}{shard})",
        report.outcome(),
        count(findings as u64, "finding"),
        count(cases, "case"),
        report.seed
    );
    writeln!(to, "{}", Paint::write(style, &line))
}

impl Report {
    /// How many components, each at each of its places, came out so.
    fn with(&self, status: Status) -> usize {
        self.components.iter().filter(|component| component.status == status).count()
    }

    /// How many components passed, failed and so on: `6 passed, 3 failed, 1 skipped`.
    pub fn outcome(&self) -> String {
        let (passed, failed) = (self.with(Status::Pass), self.with(Status::Fail));
        let mut parts = vec![format!("{passed} passed"), format!("{failed} failed")];
        for (status, word) in [(Status::Error, "could not run"), (Status::Skipped, "skipped")] {
            if self.with(status) > 0 {
                parts.push(format!("{} {word}", self.with(status)));
            }
        }
        parts.join(", ")
    }
}
