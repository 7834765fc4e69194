//! What a component gives on the regressions of its contract, as a recording for a snapshot.

use std::path::Path;
use std::sync::Arc;

use shakedown::author::{Call, Component, Place, Tolerance};
use shakedown::contract::erased::AnyContract;
use shakedown::contract::options::AnyOptions;
use shakedown::door::snapshots::Recording;
use shakedown::files::case_file::CaseFile;
use shakedown::files::corpora::regressions_folder;

/// The outputs of the components that `make` makes of options: each regression under its own.
pub(crate) fn on_regressions(
    contract: &'static dyn AnyContract,
    corpora: &Path,
    place: Place,
    make: impl Fn(&Arc<dyn AnyOptions>) -> Box<dyn Component>,
) -> Recording {
    let folder = regressions_folder(corpora, contract.id());
    let entries = std::fs::read_dir(&folder).expect("there are regressions");
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let tolerance = Tolerance { dtype: place.dtype, factor: 1.0 };
    let mut recording = Recording::default();
    for path in paths {
        let CaseFile { case, options, .. } = CaseFile::read_of(contract, &path).unwrap();
        let case = &case.rounded(place.dtype);
        let gradient = contract.wants_gradient(&*options);
        let call = Call { case, options: &options, place, gradient };
        let mut component = make(&options);
        component.prepare(place).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        recording.add(contract, &name, &mut *component, &call, tolerance);
    }
    recording
}
