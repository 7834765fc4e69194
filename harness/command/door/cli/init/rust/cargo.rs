//! What `Cargo.toml` says about a package, and the dev-dependency that it gets.

use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::door::cli::init::REPOSITORY;
use shakedown_core::value::error::Error;

/// A package that gets a suite.
pub(super) struct Package {
    pub(super) name: String,
    /// The library: its name in Rust, and its first file. None where the package has no library.
    pub(super) library: Option<(String, PathBuf)>,
    document: DocumentMut,
}

/// The dev-dependency.
pub(super) enum Dependency {
    /// It is there already.
    There,
    /// The text of `Cargo.toml` with it, and the line.
    Added { text: String, line: String },
}

/// The dependency's name.
const NAME: &str = "shakedown";

impl Package {
    /// Reads the folder's `Cargo.toml`.
    ///
    /// # Errors
    /// It cannot be read, or it is of a workspace without a package.
    pub(super) fn read(dir: &Path) -> Result<Package, Error> {
        let path = dir.join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|error| Error::io("read", &path, &error))?;
        let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            let at = error.span().map_or(0, |span| span.start);
            let before = &text[..at];
            let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count());
            let line = before.matches('\n').count() + 1;
            Error::new(error.message().to_owned()).at(&path).line(line, column + 1)
        })?;
        let Some(name) = document.get("package").and_then(|package| package.get("name")) else {
            return Err(Error::new(no_package(&document)).at(&path));
        };
        let Some(name) = name.as_str().map(str::to_owned) else {
            return Err(Error::new("package.name: expected a text").at(&path));
        };
        let library = library(dir, &name, &document);
        Ok(Package { name, library, document })
    }

    /// The dependency on shakedown: in the checkout where one is given, else in its repository.
    pub(super) fn dependency(&self, checkout: Option<&Path>) -> Dependency {
        if ["dev-dependencies", "dependencies"]
            .iter()
            .any(|table| self.document.get(table).and_then(|table| table.get(NAME)).is_some())
        {
            return Dependency::There;
        }
        let mut table = InlineTable::new();
        match checkout {
            Some(path) => table.insert("path", path.display().to_string().into()),
            None => table.insert("git", REPOSITORY.into()),
        };
        table.insert("default-features", false.into());
        let line = format!("{NAME} = {table}");
        let mut document = self.document.clone();
        let dependencies = document.entry("dev-dependencies").or_insert(Item::Table(Table::new()));
        let dependencies: &mut dyn TableLike =
            dependencies.as_table_like_mut().expect("cargo takes nothing but a table");
        dependencies.insert(NAME, Item::Value(Value::InlineTable(table)));
        Dependency::Added { text: document.to_string(), line }
    }
}

/// Why there is nothing to add a suite to.
fn no_package(document: &DocumentMut) -> String {
    let Some(workspace) = document.get("workspace") else {
        return "expected [package] with a name, found neither it nor [workspace]".to_owned();
    };
    let members = workspace.get("members").and_then(Item::as_array);
    let members: Vec<&str> =
        members.into_iter().flatten().filter_map(|member| member.as_str()).collect();
    let which = match members[..] {
        [] => String::new(),
        _ => format!(" (members: `{}`)", members.join("`, `")),
    };
    format!(
        "a workspace without a package of its own: name the package that has the components, \
         `shakedown init rust --dir MEMBER`{which}"
    )
}

fn library(dir: &Path, package: &str, document: &DocumentMut) -> Option<(String, PathBuf)> {
    let of_library = |key: &str| Some(document.get("lib")?.get(key)?.as_str()?.to_owned());
    let path = PathBuf::from(of_library("path").unwrap_or_else(|| "src/lib.rs".to_owned()));
    let name = of_library("name").unwrap_or_else(|| package.replace('-', "_"));
    dir.join(&path).is_file().then_some((name, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> Package {
        let document = text.parse().unwrap();
        Package { name: "p".to_owned(), library: None, document }
    }

    fn added(text: &str) -> String {
        match package(text).dependency(None) {
            Dependency::There => panic!("it is not there:\n{text}"),
            Dependency::Added { text, .. } => text,
        }
    }

    #[test]
    fn comments_and_order_are_kept() {
        let before = "# ours\n[package]\nname = 'p' # quoted so\n\n[dev-dependencies]\n\
                      zebra = \"1\" # last\nant = \"2\"\n\n# the end\n[features]\nx = []\n";
        let line = format!("shakedown = {{ git = \"{REPOSITORY}\", default-features = false }}\n");
        let after = before.replace("ant = \"2\"\n", &format!("ant = \"2\"\n{line}"));
        assert_eq!(added(before), after);
    }

    #[test]
    fn a_table_of_dev_dependencies_is_made_where_there_is_none() {
        let after = added("[package]\nname = \"p\"\n");
        assert!(after.starts_with("[package]\nname = \"p\"\n\n[dev-dependencies]\nshakedown"));
    }

    #[test]
    fn a_dependency_in_any_form_is_recognised() {
        for text in [
            "[dev-dependencies]\nshakedown = \"0.1\"\n",
            "[dependencies]\nshakedown = { workspace = true }\n",
            "[dev-dependencies.shakedown]\npath = \"x\"\n",
            "dev-dependencies.shakedown.path = \"x\"\n",
        ] {
            assert!(matches!(package(text).dependency(None), Dependency::There), "{text}");
        }
    }
}
