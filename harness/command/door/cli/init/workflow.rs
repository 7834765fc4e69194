//! The CI workflow, and the folder for regressions that it replays.

use std::path::{Component, Path, PathBuf};

use super::files::File;
use super::template::fill;
use super::{MANIFEST_FILE, REPOSITORY};

/// The workflow's file, from the root of the git repository.
pub(super) const FILE: &str = ".github/workflows/shakedown.yml";

/// The folder of a contract's regressions, with what says what goes there.
pub(super) fn regressions(contract: &str) -> [File; 2] {
    let nothing = || "nothing: it only says what goes there".to_owned();
    [
        File::new("corpora/README.md", include_str!("corpora.md").to_owned(), nothing()),
        // Git keeps no empty folder.
        File::new(format!("corpora/{contract}/regressions/.gitkeep"), String::new(), nothing()),
    ]
}

/// The workflow of a Python repository.
pub(super) fn python(root: &Path, inside: &Path, dir: &Path, component: &str) -> File {
    let install = if ["pyproject.toml", "setup.py"].iter().any(|name| dir.join(name).is_file()) {
        "pip install --editable ."
    } else if dir.join("requirements.txt").is_file() {
        "pip install --requirement requirements.txt"
    } else {
        "python --version # pip install …"
    };
    let text = fill(
        include_str!("python/workflow.yml"),
        &[
            ("REPOSITORY", REPOSITORY),
            ("FOLDER", &slashes(inside)),
            ("PREFIX", &prefix(inside)),
            ("INSTALL", install),
            ("COMPONENT", component),
        ],
    );
    let by_hand = format!(
        "on a pull request:  shakedown check {MANIFEST_FILE} --github\n\
         every night:        shakedown fuzz {component} --manifest {MANIFEST_FILE} --time 10m"
    );
    File::new(from(root, dir), text, by_hand)
}

/// The workflow of a Rust package.
pub(super) fn rust(root: &Path, inside: &Path, dir: &Path) -> File {
    let values = [("FOLDER", &*slashes(inside)), ("PREFIX", &*prefix(inside))];
    let text = fill(include_str!("rust/workflow.yml"), &values);
    let by_hand = "on a pull request:  cargo nextest run --test shakedown\n\
                   every night:        SHAKEDOWN_CASES=100000 SHAKEDOWN_SEED=… cargo nextest run \
                   --release --test shakedown";
    File::new(from(root, dir), text, by_hand.to_owned())
}

/// The workflow's path from the training repository, which may be a folder of the git repository.
fn from(root: &Path, dir: &Path) -> PathBuf {
    let full = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let inside = full.strip_prefix(root).expect("the repository is above or here");
    let up: PathBuf = inside.components().map(|_| Component::ParentDir).collect();
    up.join(FILE)
}

fn slashes(inside: &Path) -> String {
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

fn prefix(inside: &Path) -> String {
    let folder = slashes(inside);
    if folder == "." { String::new() } else { format!("{folder}/") }
}
