//! Rules about what surrounds the components: a run, its configuration, its data set. A rule is one
//! file, whose head is its documentation.

use std::collections::BTreeMap;

use crate::report::{
    Cause, ContractHint, Evidence, Figure, Finding, Location, Of, RuleReport, RuleStatus, Severity,
    Stage, StageVerdict,
};
use shakedown_core::contract::doc::Doc;

/// The headings that the documentation of every rule has. `Causes` and `Next` are lists.
pub const HEADINGS: [&str; 5] = ["Fires when", "Not said", "Causes", "Next", "Source"];

/// What a rule's file says besides its documentation.
pub struct Head<S: ?Sized> {
    /// The stage of the pipeline at which to look.
    pub stage: Stage,
    /// The metrics, settings or columns without which it says nothing.
    pub needs: &'static [&'static str],
    /// Rules whose findings follow from one of this.
    pub explains: &'static [&'static str],
    /// The contracts to check, each with the invariants that would tell.
    pub contracts: &'static [(&'static str, &'static [&'static str])],
    /// Simulated bugs that it must catch; our own tests check that it does.
    pub catches: &'static [&'static str],
    /// What it says of a subject.
    pub check: fn(&S) -> Judgement,
}

/// One rule about a subject `S`: a run, a configuration, a data set.
pub struct Rule<S: ?Sized + 'static> {
    /// Its id: `reward-declines`.
    pub id: &'static str,
    /// Its documentation, the head of its file.
    pub doc: Doc,
    /// What its file declares.
    pub head: Head<S>,
}

/// What there is to say about a rule, whatever it is about.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its id.
    pub id: &'static str,
    /// Its documentation.
    pub doc: Doc,
    /// The stage of the pipeline at which to look.
    pub stage: Stage,
    /// The metrics, settings or columns without which it says nothing.
    pub needs: &'static [&'static str],
    /// Rules whose findings follow from one of this.
    pub explains: &'static [&'static str],
    /// The contracts to check, each with the invariants that would tell.
    pub contracts: &'static [(&'static str, &'static [&'static str])],
    /// Simulated bugs that it must catch.
    pub catches: &'static [&'static str],
}

impl<S: ?Sized> Rule<S> {
    /// What there is to say about it.
    pub fn about(&self) -> About {
        let Head { stage, needs, explains, contracts, catches, .. } = self.head;
        About { id: self.id, doc: self.doc, stage, needs, explains, contracts, catches }
    }
}

impl About {
    /// All that there is to say about it, as `shakedown explain` does.
    pub fn explained(&self) -> String {
        let mut text = String::new();
        for heading in HEADINGS {
            let list = ["Causes", "Next"].contains(&heading);
            let section = match list {
                true => self.doc.items(heading).join("\n"),
                false => self.doc.section(heading),
            };
            if !section.is_empty() {
                let section = section.replace('\n', "\n  ");
                text.push_str(&format!("\n{}\n  {section}\n", heading.to_lowercase()));
            }
        }
        let mut line = |label: &str, names: Vec<String>| {
            if !names.is_empty() {
                text.push_str(&format!("\n{label}: {}\n", names.join(", ")));
            }
        };
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        line("needs", owned(self.needs));
        line("explains", owned(self.explains));
        let contracts = self.contracts.iter().flat_map(|(contract, ids)| match ids {
            [] => vec![(*contract).to_owned()],
            ids => ids.iter().map(|id| format!("{contract}/{id}")).collect(),
        });
        line("contracts", contracts.collect());
        text
    }
}

/// What a rule says: nothing is found where the list is empty.
pub type Judgement = Result<Vec<Firing>, Unjudged>;

/// Why a rule says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// What it needs is not there, or too little of it.
    Insufficient(String),
    /// It does not speak about this kind of training.
    NotApplicable(String),
}

/// Too little is known, for this reason.
pub fn insufficient(why: impl Into<String>) -> Unjudged {
    Unjudged::Insufficient(why.into())
}

/// The rule does not speak about this, for this reason.
pub fn not_applicable(why: impl Into<String>) -> Unjudged {
    Unjudged::NotApplicable(why.into())
}

/// What a rule found once. Causes and steps come from its documentation; those that are tied to a
/// setting of this subject are added here, and come first.
#[derive(Clone, Debug)]
pub struct Firing {
    severity: Severity,
    found: String,
    steps: Option<[i64; 2]>,
    location: Option<Location>,
    evidence: Vec<Evidence>,
    causes: Vec<Cause>,
    next: Vec<String>,
}

impl Firing {
    /// A finding in one sentence without full stop, its figures included.
    pub fn new(severity: Severity, found: impl Into<String>) -> Firing {
        let found = found.into();
        let (evidence, causes, next) = Default::default();
        Firing { severity, found, steps: None, location: None, evidence, causes, next }
    }

    /// An error.
    pub fn error(found: impl Into<String>) -> Firing {
        Firing::new(Severity::Error, found)
    }

    /// A warning.
    pub fn warning(found: impl Into<String>) -> Firing {
        Firing::new(Severity::Warning, found)
    }

    /// A note.
    pub fn note(found: impl Into<String>) -> Firing {
        Firing::new(Severity::Note, found)
    }

    /// The same, at these steps, the first and the last.
    pub fn at_steps(self, steps: [i64; 2]) -> Firing {
        Firing { steps: Some(steps), ..self }
    }

    /// The same, at a line of a file.
    pub fn at(self, location: Option<Location>) -> Firing {
        Firing { location, ..self }
    }

    /// The same, with a figure of a metric that it rests on.
    pub fn metric(self, id: &str, statistic: &str, value: f64, limit: Option<f64>) -> Firing {
        self.figure(Of::Metric(id.to_owned()), statistic, value, limit)
    }

    /// The same, with a figure of a setting that it rests on.
    pub fn field(self, id: &str, statistic: &str, value: f64, limit: Option<f64>) -> Firing {
        self.figure(Of::Field(id.to_owned()), statistic, value, limit)
    }

    /// The same, with a figure of a column that it rests on.
    pub fn column(self, name: &str, statistic: &str, value: f64, limit: Option<f64>) -> Firing {
        self.figure(Of::Column(name.to_owned()), statistic, value, limit)
    }

    fn figure(mut self, of: Of, statistic: &str, value: f64, limit: Option<f64>) -> Firing {
        let (statistic, value) = (statistic.to_owned(), Figure(value));
        self.evidence.push(Evidence { of, statistic, value, limit: limit.map(Figure) });
        self
    }

    /// The same, with a cause that a setting of this subject makes likely.
    pub fn because(mut self, setting: Option<&str>, text: impl Into<String>) -> Firing {
        self.causes.push(Cause { text: text.into(), setting: setting.map(str::to_owned) });
        self
    }

    /// The same, with a step that comes before those of the documentation.
    pub fn then(mut self, next: impl Into<String>) -> Firing {
        self.next.push(next.into());
        self
    }
}

impl From<Firing> for Judgement {
    fn from(firing: Firing) -> Judgement {
        Ok(vec![firing])
    }
}

/// What a list of rules comes to.
pub struct Judged {
    /// Every rule, in the order of the list.
    pub rules: Vec<RuleReport>,
    /// By stage, severity and first step; what others explain is marked.
    pub findings: Vec<Finding>,
    /// What came of each stage.
    pub stages: BTreeMap<Stage, StageVerdict>,
}

/// Which rules are asked.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// These only; all where there are none.
    pub only: Vec<String>,
    /// Not these, each for a reason.
    pub skip: Vec<(String, String)>,
}

/// Judges a subject by all rules: the first finding hides no other.
pub fn judge<S: ?Sized>(subject: &S, rules: &[Rule<S>], asked: &Asked) -> Judged {
    judge_by(rules, asked, |rule| (rule.head.check)(subject))
}

/// Judges by what each rule says.
pub fn judge_by<S: ?Sized>(
    rules: &[Rule<S>],
    asked: &Asked,
    says: impl Fn(&Rule<S>) -> Judgement,
) -> Judged {
    let mut reports = Vec::new();
    let mut findings = Vec::new();
    for rule in rules {
        let is_asked = asked.only.is_empty() || asked.only.iter().any(|id| id == rule.id);
        let skip = asked.skip.iter().find(|(id, _)| id == rule.id);
        let (status, reason) = match (is_asked, skip) {
            (false, _) => (RuleStatus::Skipped, Some("not asked for".to_owned())),
            (true, Some((_, why))) => (RuleStatus::Skipped, Some(why.clone())),
            (true, None) => match says(rule) {
                Ok(fired) if fired.is_empty() => (RuleStatus::Quiet, None),
                Ok(fired) => {
                    findings.extend(fired.into_iter().map(|firing| rule.finding(firing)));
                    (RuleStatus::Fires, None)
                }
                Err(Unjudged::Insufficient(why)) => (RuleStatus::Insufficient, Some(why)),
                Err(Unjudged::NotApplicable(why)) => (RuleStatus::NotApplicable, Some(why)),
            },
        };
        let (id, stage) = (rule.id.to_owned(), rule.head.stage);
        reports.push(RuleReport { id, stage, status, reason });
    }
    fold(&mut findings, rules);
    let first_step = |finding: &Finding| finding.steps.map_or(i64::MIN, |[first, _]| first);
    findings.sort_by_key(|one| (one.stage, std::cmp::Reverse(one.severity), first_step(one)));
    let stages = Stage::JUDGED.iter().map(|stage| (*stage, verdict(*stage, &reports, &findings)));
    Judged { stages: stages.collect(), rules: reports, findings }
}

/// Marks what another finding explains that began no later. Where something begins is known up to
/// the window that it shows in, so a tenth of its own extent does not count.
fn fold<S: ?Sized>(findings: &mut [Finding], rules: &[Rule<S>]) {
    let began = |finding: &Finding| finding.steps.map_or(i64::MIN, |[first, _]| first);
    let fired: Vec<(String, i64)> =
        findings.iter().map(|finding| (finding.rule.clone(), began(finding))).collect();
    for finding in findings.iter_mut() {
        let window = finding.steps.map_or(0, |[first, last]| last.saturating_sub(first) / 10);
        let latest = began(finding).saturating_add(window);
        let mut causes = rules.iter().filter(|rule| {
            rule.head.explains.contains(&finding.rule.as_str())
                && fired.iter().any(|(id, step)| id == rule.id && *step <= latest)
        });
        finding.explained_by = causes.next().map(|rule| rule.id.to_owned());
    }
}

fn verdict(stage: Stage, rules: &[RuleReport], findings: &[Finding]) -> StageVerdict {
    let fires = |one: &Finding| one.stage == stage && one.severity > Severity::Note;
    let judged = |one: &RuleReport| {
        one.stage == stage && matches!(one.status, RuleStatus::Fires | RuleStatus::Quiet)
    };
    match (findings.iter().any(fires), rules.iter().any(judged)) {
        (true, _) => StageVerdict::Fires,
        (false, true) => StageVerdict::Quiet,
        (false, false) => StageVerdict::Unjudged,
    }
}

impl<S: ?Sized> Rule<S> {
    fn finding(&self, firing: Firing) -> Finding {
        let Firing { severity, found, steps, location, evidence, mut causes, mut next } = firing;
        let told = self.doc.items("Causes").into_iter();
        causes.extend(told.map(|text| Cause { text, setting: None }));
        next.extend(self.doc.items("Next"));
        let contracts = self.head.contracts.iter().map(|(contract, invariants)| ContractHint {
            contract: (*contract).to_owned(),
            invariants: invariants.iter().map(|id| (*id).to_owned()).collect(),
        });
        Finding {
            rule: self.id.to_owned(),
            severity,
            stage: self.head.stage,
            found,
            steps,
            location,
            evidence,
            causes,
            next,
            contracts: contracts.collect(),
            explained_by: None,
            not_said: self.doc.section("Not said"),
            source: self.doc.section("Source"),
        }
    }
}

/// A list of rules, one file each in its folder: declares the modules and a function `all` that
/// gives the list. The id is the file's name with dashes.
macro_rules! rules {
    ($subject:ty; $( $name:ident ),+ $(,)?) => {
        $( mod $name; )+

        /// Every rule, in the order in which they are listed.
        pub fn all() -> &'static [$crate::rules::Rule<$subject>] {
            static ALL: &[$crate::rules::Rule<$subject>] = &[$( $crate::rules::Rule {
                id: {
                    use ::shakedown_core::value::text::{bytes, dashed};
                    const NAME: &[u8] = &bytes::<{ stringify!($name).len() }>(stringify!($name));
                    dashed(NAME)
                },
                doc: ::shakedown_core::contract::doc::Doc(
                    include_str!(concat!(stringify!($name), ".rs")),
                ),
                head: $name::HEAD,
            } ),+];
            ALL
        }
    };
}
pub(crate) use rules;
