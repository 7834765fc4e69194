//! `shakedown check-batch`: a recorded batch of a real training step.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::check::Task;
use super::{CheckBatchArguments, Done, Stopped, check};
use shakedown_contracts::REGISTRY;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::{Device, Place};
use shakedown_core::value::record::AnyRecord;
use shakedown_engine::check::run_on;
use shakedown_engine::files::batch::{self, Batch, Choice};
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::recorded;
use shakedown_engine::report::{ComponentReport, Report};
use shakedown_engine::subject::Subject;

pub(super) fn run(arguments: &CheckBatchArguments) -> Done {
    let started = Instant::now();
    let contract = REGISTRY.get(&arguments.contract).map_err(Error::new)?;
    let components = check_batch(contract, arguments)?;
    let report = Report::new(0, None, started, components);
    arguments.files.conclude(&report, &[])
}

fn check_batch(
    contract: &'static dyn AnyContract,
    arguments: &CheckBatchArguments,
) -> Result<Vec<ComponentReport>, Stopped> {
    let CheckBatchArguments { file, manifest, option, place, .. } = arguments;
    let manifest = manifest.as_deref().map(|path| Manifest::read(&REGISTRY, path)).transpose()?;
    let asked: Vec<Choice> = option
        .iter()
        .map(|text| batch::choice(contract, text).map_err(|error| error.within("--option")))
        .collect::<Result<_, _>>()?;
    let batch = batch::read(contract, file)?;
    if batch.recorded.is_none() && manifest.is_none() {
        let message = "nothing to check: the file has no outputs, and there is no --manifest \
                       with a component to call";
        return Err(Error::new(message).at(file).into());
    }
    let corpora = manifest.as_ref().map_or(Path::new("corpora"), Manifest::corpora);
    let name = file.file_name().map_or_else(String::new, |name| name.display().to_string());
    let place = place.unwrap_or(Place { device: Device::Cpu, dtype: batch.dtype });
    let mut reports = Vec::new();
    if batch.recorded.is_some() {
        let options = recorded_options(arguments, manifest.as_ref(), &batch, &asked)?;
        // What was recorded came from these very numbers: rounding them would change it.
        valid(contract, &*batch.case, &*options, place, file)?;
        reports.extend(recorded::check(&name, &batch, &options, place, corpora)?);
    }
    if let Some(manifest) = &manifest {
        reports.extend(components(arguments, manifest, &batch, &asked)?);
    }
    Ok(reports)
}

/// The options under which the recorded outputs are checked: those of the component in the
/// manifest that gave them, or the defaults, then those of the file, then those asked for.
fn recorded_options(
    arguments: &CheckBatchArguments,
    manifest: Option<&Manifest>,
    batch: &Batch,
    asked: &[Choice],
) -> Result<Arc<dyn AnyOptions>, Error> {
    let Some(manifest) = manifest else {
        return batch.options(&batch.contract.default_options(), asked);
    };
    let mut all: Vec<(&str, Arc<dyn AnyOptions>)> = Vec::new();
    for task in tasks(arguments, manifest, batch)? {
        all.push((&task.declared.name, batch.options(&task.declared.options, asked)?));
    }
    let (first, options) = all.first().expect("there is a component of the contract");
    match all.iter().find(|(_, other)| other != options) {
        None => Ok(Arc::clone(options)),
        Some((other, _)) => {
            let why = format!(
                "`{first}` and `{other}` have different options: say with --only which of them \
                 gave the recorded outputs, or the options with --option"
            );
            Err(Error::new(why).at(manifest.path()))
        }
    }
}

/// The components of the contract that are asked for.
fn tasks<'a>(
    arguments: &CheckBatchArguments,
    manifest: &'a Manifest,
    batch: &Batch,
) -> Result<Vec<Task<'a>>, Error> {
    let CheckBatchArguments { only, place, .. } = arguments;
    let places = match place {
        Some(place) => Some(vec![*place]),
        None => Place::from_env()?,
    };
    let id = batch.contract.id();
    let mut tasks = check::select(manifest, places.as_deref(), only)?;
    tasks.retain(|task| task.declared.contract.id() == id);
    if tasks.is_empty() {
        return Err(Error::new(format!("no component of `{id}` is asked for")));
    }
    Ok(tasks)
}

/// Checks the components of the contract on the batch.
fn components(
    arguments: &CheckBatchArguments,
    manifest: &Manifest,
    batch: &Batch,
    asked: &[Choice],
) -> Result<Vec<ComponentReport>, Error> {
    let CheckBatchArguments { file, .. } = arguments;
    let contract = batch.contract;
    let mut reports = Vec::new();
    for task in tasks(arguments, manifest, batch)? {
        let mut subject = Subject::declared(manifest, task.declared);
        subject.only.clone_from(&task.only);
        subject.options = batch.options(&subject.options, asked)?;
        for place in task.places {
            let case = batch.case.rounded(place.dtype);
            valid(contract, &*case, &*subject.options, place, file)?;
            let mut report = run_on(&mut subject, place, &case)?;
            report.location = Some(manifest.location(task.declared));
            reports.push(report);
        }
    }
    Ok(reports)
}

fn valid(
    contract: &dyn AnyContract,
    case: &dyn AnyRecord,
    options: &dyn AnyOptions,
    place: Place,
    file: &Path,
) -> Result<(), Error> {
    contract.valid(case, options, place.dtype).map_err(|why| {
        let id = contract.id();
        Error::new(format!("the batch is outside the contract `{id}`: {why}")).at(file)
    })
}
