//! Embeds the regressions of each contract: nothing else of `corpora/`, where a builder may have
//! cases of their own.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let corpora = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../corpora");
    // A new contract is a new line there. Not all of `corpora/`: a run writes into it.
    println!("cargo::rerun-if-changed=lib.rs");
    let mut code = String::new();
    for folder in entries(&corpora) {
        let regressions = folder.join("regressions");
        if !regressions.is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", regressions.display());
        let id = folder.file_name().unwrap().to_str().unwrap();
        let name = id.to_uppercase().replace('-', "_");
        code += &format!("pub(crate) const {name}: &[(&str, &str)] = &[\n");
        for path in entries(&regressions) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            code += &format!("    ({stem:?}, include_str!({path:?})),\n");
        }
        code += "];\n";
    }
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("regressions.rs"), code).unwrap();
}

/// What is in a folder, sorted: no build depends on the order on a disk.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
