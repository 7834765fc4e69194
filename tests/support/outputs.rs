//! What a component gives on the regressions of its contract, as a recording for a snapshot.

use std::path::Path;

use shakedown::contract::Contract;
use shakedown::contract::component::{Call, Component};
use shakedown::door::snapshots::Recording;
use shakedown::files::case_file::CaseFile;
use shakedown::files::corpora::regressions_folder;
use shakedown::numeric::tolerance::Tolerance;
use shakedown::value::place::Place;
use shakedown::value::record::round;

/// The outputs of the components that `make` makes of options: each regression under its own.
pub(crate) fn on_regressions<C: Contract, K: Component<C>>(
    corpora: &Path,
    place: Place,
    make: impl Fn(C::Options) -> K,
) -> Recording {
    let folder = regressions_folder(corpora, C::ID);
    let entries = std::fs::read_dir(&folder).expect("there are regressions");
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let tolerance = Tolerance { dtype: place.dtype, factor: 1.0 };
    let mut recording = Recording::default();
    for path in paths {
        let CaseFile { mut case, options, .. } = CaseFile::<C>::read(&path).unwrap();
        round(&mut case, place.dtype);
        let gradient = C::wants_gradient(&options);
        let call = Call { case: &case, options: &options, place, gradient };
        let mut component = make(options.clone());
        component.prepare(place).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        recording.add(&name, &mut component, &call, tolerance);
    }
    recording
}
