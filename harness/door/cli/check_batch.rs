//! `shakedown check-batch`: a recorded batch of a real training step.

use std::path::Path;
use std::time::Instant;

use super::{CheckBatchArguments, Done, Stopped, check, output};
use crate::files::batch;
use crate::files::batch::{Batch, Choice};
use crate::engine::check::run_on;
use crate::contract::Contract;
use crate::value::record::round;
use crate::contracts;
use crate::contracts::Visit;
use crate::value::error::Error;
use crate::files::manifest::Manifest;
use crate::value::place::{Device, Place};
use crate::engine::recorded;
use crate::render::text::write_component;
use crate::report::{ComponentReport, Report};

pub(super) fn run(arguments: &CheckBatchArguments) -> Done {
    let started = Instant::now();
    let check = CheckBatch { arguments };
    let unknown = || Error::new(contracts::unknown(&arguments.contract));
    let components = contracts::visit(&arguments.contract, check).ok_or_else(unknown)??;
    let (mut to, paint) = output();
    for report in &components {
        write_component(&mut to, report, paint)?;
    }
    let report = Report::new(0, None, started, components);
    arguments.files.conclude(&report, &mut to, paint)
}

struct CheckBatch<'a> {
    arguments: &'a CheckBatchArguments,
}

impl Visit for CheckBatch<'_> {
    type Output = Result<Vec<ComponentReport>, Stopped>;

    fn visit<C: Contract>(self) -> Self::Output {
        let CheckBatchArguments { file, manifest, option, place, .. } = self.arguments;
        let manifest = manifest.as_deref().map(Manifest::read).transpose()?;
        let asked: Vec<Choice> = option
            .iter()
            .map(|text| batch::choice::<C>(text).map_err(|error| error.within("--option")))
            .collect::<Result<_, _>>()?;
        let batch = batch::read::<C>(file)?;
        if batch.recorded.is_none() && manifest.is_none() {
            let message = "nothing to check: the file has no outputs, and there is no --manifest \
                           with a component to call";
            return Err(Error::new(message).at(file).into());
        }
        let corpora = manifest.as_ref().map_or(Path::new("corpora"), Manifest::corpora);
        let name = file.file_name().map_or_else(String::new, |name| name.display().to_string());
        let options = batch.options(&C::Options::default(), &asked)?;
        let place = place.unwrap_or(Place { device: Device::Cpu, dtype: batch.dtype });
        let mut reports = Vec::new();
        if batch.recorded.is_some() {
            // What was recorded came from these very numbers: rounding them would change it.
            valid::<C>(&batch.case, &options, place, file)?;
            reports.extend(recorded::check(&name, &batch, &options, place, corpora)?);
        }
        if let Some(manifest) = &manifest {
            reports.extend(self.components(manifest, &batch, &asked)?);
        }
        Ok(reports)
    }
}

impl CheckBatch<'_> {
    /// Checks the components of the contract on the batch.
    fn components<C: Contract>(
        &self,
        manifest: &Manifest,
        batch: &Batch<C>,
        asked: &[Choice],
    ) -> Result<Vec<ComponentReport>, Error> {
        let CheckBatchArguments { file, only, place, .. } = self.arguments;
        let places = match place {
            Some(place) => Some(vec![*place]),
            None => Place::from_env()?,
        };
        let mut tasks = check::select(manifest, places.as_deref(), only)?;
        tasks.retain(|task| task.declared.contract == C::ID);
        if tasks.is_empty() {
            return Err(Error::new(format!("no component of `{}` is asked for", C::ID)));
        }
        let mut reports = Vec::new();
        for task in tasks {
            let mut subject = manifest.subject::<C>(task.declared)?;
            subject.only.clone_from(&task.only);
            subject.options = batch.options(&subject.options, asked)?;
            for place in task.places {
                let mut case = batch.case.clone();
                round(&mut case, place.dtype);
                valid::<C>(&case, &subject.options, place, file)?;
                let mut report = run_on(&mut subject, place, &case)?;
                report.location = Some(manifest.location(task.declared));
                reports.push(report);
            }
        }
        Ok(reports)
    }
}

fn valid<C: Contract>(
    case: &C::Case,
    options: &C::Options,
    place: Place,
    file: &Path,
) -> Result<(), Error> {
    C::valid(case, options, place.dtype).map_err(|why| {
        Error::new(format!("the batch is outside the contract `{}`: {why}", C::ID)).at(file)
    })
}
