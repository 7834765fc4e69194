//! Case files: one case as values, with the reason why it is kept.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::files::atomic::write_atomically;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::registry::Registry;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Shared, Source, Value};
use shakedown_core::value::redact::{homes, secrets};
use shakedown_core::value::text::fnv1a;
use shakedown_core::value::yaml::{self, Document, Step};

/// A case with what is known about it.
#[derive(Clone)]
pub struct CaseFile {
    /// The contract.
    pub contract: &'static dyn AnyContract,
    /// The invariant that it broke; `None` for a case in flight.
    pub invariant: Option<String>,
    /// The other invariants that the same bug breaks, on cases of their own.
    pub also: Vec<String>,
    /// The component that broke it.
    pub component: Option<String>,
    /// The batch whose recorded outputs broke it, where no component was called.
    pub recorded: Option<String>,
    /// The place at which it did.
    pub place: Option<Place>,
    /// Why it is kept.
    pub why: Option<String>,
    /// The bug report.
    pub link: Option<String>,
    /// The known bugs that the component behaved like.
    pub diagnosis: Vec<String>,
    /// What the component gave elsewhere when it was found, as a fingerprint.
    pub behaves: Option<String>,
    /// Whether it failed only after other calls: something is kept from call to call.
    pub stateful: bool,
    /// Whether a report of `fuzz` was written that has it.
    pub reported: bool,
    /// The options in force.
    pub options: Arc<dyn AnyOptions>,
    /// The inputs.
    pub case: Shared,
}

/// The part of a case file that is the same for every contract.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    schema: u32,
    /// The contract's name.
    pub contract: String,
    #[serde(default)]
    invariant: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    component: Option<String>,
    #[serde(default)]
    recorded: Option<String>,
    #[serde(default)]
    place: Option<Place>,
    #[serde(default)]
    why: Option<String>,
    #[serde(default)]
    link: Option<String>,
    #[serde(default)]
    diagnosis: Vec<String>,
    #[serde(default)]
    behaves: Option<String>,
    #[serde(default)]
    stateful: bool,
    #[serde(default)]
    reported: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "read again by the contract")]
    options: serde_yaml::Value,
    #[expect(dead_code, reason = "read again by the contract")]
    case: serde_yaml::Value,
}

impl Head {
    /// Reads what every case file has.
    ///
    /// # Errors
    /// With path, line, column and the nearest known name.
    pub fn read(contracts: &Registry, path: &Path) -> Result<Head, Error> {
        Self::parse(contracts, &yaml::read(path)?).map_err(|error| error.at(path))
    }

    /// Reads what every case file of a contract on our list has.
    pub fn parse(contracts: &Registry, text: &str) -> Result<Head, Error> {
        let document = Document::new(text);
        let head = Self::parse_any(&document)?;
        head.listed(contracts, &document)?;
        Ok(head)
    }

    /// Reads what every case file has, also that of a contract on no list of ours.
    fn parse_any(document: &Document) -> Result<Head, Error> {
        let head: Head = document.read()?;
        if head.schema != 1 {
            let why = format!("unknown schema {}, expected 1", head.schema);
            return Err(document.wrong(&[Step::Key("schema")], why));
        }
        Ok(head)
    }

    fn listed(
        &self,
        contracts: &Registry,
        document: &Document,
    ) -> Result<&'static dyn AnyContract, Error> {
        let found = contracts.get(&self.contract);
        found.map_err(|why| document.wrong(&[Step::Key("contract")], why))
    }
}

impl CaseFile {
    /// Reads a case file of a contract on our list.
    ///
    /// # Errors
    /// With path, line, column and the nearest known name.
    pub fn read(contracts: &Registry, path: &Path) -> Result<Self, Error> {
        Self::parse(contracts, &yaml::read(path)?).map_err(|error| error.at(path))
    }

    /// Reads the text of a case file of a contract on our list.
    ///
    /// # Errors
    /// With line, column and the nearest known name.
    pub fn parse(contracts: &Registry, text: &str) -> Result<Self, Error> {
        let document = Document::new(text);
        let head = Head::parse_any(&document)?;
        let contract = head.listed(contracts, &document)?;
        Self::of(contract, head, &document)
    }

    /// Reads a case file of this contract.
    ///
    /// # Errors
    /// With path, line, column and the nearest known name.
    pub fn read_of(contract: &'static dyn AnyContract, path: &Path) -> Result<Self, Error> {
        Self::parse_of(contract, &yaml::read(path)?).map_err(|error| error.at(path))
    }

    /// Reads the text of a case file of this contract.
    ///
    /// # Errors
    /// With line, column and the nearest known name.
    pub fn parse_of(contract: &'static dyn AnyContract, text: &str) -> Result<Self, Error> {
        let document = Document::new(text);
        let head = Head::parse_any(&document)?;
        if head.contract != contract.id() {
            let (expected, found) = (contract.id(), &head.contract);
            let why = format!("expected a case of `{expected}`, found one of `{found}`");
            return Err(document.wrong(&[Step::Key("contract")], why));
        }
        Self::of(contract, head, &document)
    }

    fn of(
        contract: &'static dyn AnyContract,
        head: Head,
        document: &Document,
    ) -> Result<Self, Error> {
        let options = contract.read_options(document, &[Step::Key("options")])?;
        if let Err((name, why)) = options.check() {
            let steps = [Step::Key("options"), Step::Key(name)];
            return Err(document.wrong(&steps, format!("options.{name}: {why}")));
        }
        let Head { invariant, also, component, recorded, place, why, link, .. } = head;
        let Head { diagnosis, behaves, stateful, reported, .. } = head;
        if let Some(id) = &invariant {
            let wrong = |why| document.wrong(&[Step::Key("invariant")], why);
            contract.invariant_called(id).map_err(wrong)?;
        }
        let make = |get: Source<'_, Value>| contract.case(get);
        let case = yaml::record_at(document, &[Step::Key("case")], &contract.inputs(), make)?;
        Ok(CaseFile {
            contract,
            invariant,
            also,
            component,
            recorded,
            place,
            why,
            link,
            diagnosis,
            behaves,
            stateful,
            reported,
            options,
            case,
        })
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let component = self.component.as_deref();
        let mut text = head(
            self.contract.id(),
            self.invariant.as_deref(),
            component,
            self.place,
            &*self.options,
        );
        // Before the options: a reader wants the reason first.
        let mut reason = String::new();
        for (key, value) in [("recorded", &self.recorded), ("why", &self.why), ("link", &self.link)]
        {
            if let Some(value) = value {
                reason.push_str(&format!("{key}: "));
                yaml::write_string(&mut reason, &secrets(&homes(value)));
                reason.push('\n');
            }
        }
        if !self.also.is_empty() {
            reason.push_str(&format!("also: {}\n", yaml::inline(&self.also)));
        }
        if !self.diagnosis.is_empty() {
            reason.push_str(&format!("diagnosis: {}\n", yaml::inline(&self.diagnosis)));
        }
        if let Some(behaves) = &self.behaves {
            reason.push_str("behaves: ");
            yaml::write_string(&mut reason, behaves);
            reason.push('\n');
        }
        if self.stateful {
            reason.push_str("stateful: true\n");
        }
        if self.reported {
            reason.push_str("reported: true\n");
        }
        let at = text.find("options: ").expect("the head has options");
        text.insert_str(at, &reason);
        yaml::write_record(&mut text, &*self.case);
        text
    }

    /// Writes the file, all of it or nothing, and makes its folder.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        write_atomically(path, self.text().as_bytes())
    }

    /// Writes the file into a folder under a name that says what is inside: the same case of the
    /// same invariant has the same name, and no file of another case is written over. What was
    /// reported stays so.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn write_in(&self, folder: &Path) -> Result<PathBuf, Error> {
        let said = self.said();
        let hash = fnv1a(said.bytes());
        let stem = format!("{}-{hash:08x}", self.invariant.as_deref().unwrap_or("case"));
        for number in 1_u64.. {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = folder.join(format!("{stem}{suffix}.yaml"));
            let mut file = self.clone();
            if path.symlink_metadata().is_ok() {
                match Self::read_of(self.contract, &path) {
                    Ok(before) if before.said() == said => {
                        let same = file.diagnosis.first() == before.diagnosis.first()
                            && (file.behaves.is_none() || file.behaves == before.behaves);
                        file.reported |= before.reported && same;
                        file.behaves = file.behaves.or(before.behaves);
                        let others = before.also.into_iter();
                        file.also.extend(others.filter(|id| same && !self.also.contains(id)));
                    }
                    _ => continue,
                }
            }
            file.write(&path)?;
            return Ok(path);
        }
        unreachable!("no folder has as many files")
    }

    /// The text without what became of the case and what the component behaved like.
    fn said(&self) -> String {
        let (also, diagnosis) = (Vec::new(), Vec::new());
        CaseFile { also, diagnosis, behaves: None, reported: false, ..self.clone() }.text()
    }
}

/// What stands in a case file before the values of its case.
pub(crate) fn head(
    contract: &str,
    invariant: Option<&str>,
    component: Option<&str>,
    place: Option<Place>,
    options: &dyn AnyOptions,
) -> String {
    let mut text = format!("schema: 1\ncontract: {contract}\n");
    let place = place.map(|place| place.to_string());
    let named = [("invariant", invariant), ("component", component), ("place", place.as_deref())];
    for (key, value) in named {
        if let Some(value) = value {
            let _ = write!(text, "{key}: ");
            yaml::write_string(&mut text, value);
            text.push('\n');
        }
    }
    let _ = writeln!(text, "options: {}\ncase:", options.yaml());
    text
}

impl CaseFile {
    /// A case of which nothing is known.
    pub fn blank(contract: &'static dyn AnyContract, case: Shared) -> Self {
        CaseFile {
            contract,
            invariant: None,
            also: Vec::new(),
            component: None,
            recorded: None,
            place: None,
            why: None,
            link: None,
            diagnosis: Vec::new(),
            behaves: None,
            stateful: false,
            reported: false,
            options: contract.default_options(),
            case,
        }
    }
}
