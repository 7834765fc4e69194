//! The public functions of a crate, by way of its public modules.

use std::fs;
use std::path::Path;

use syn::{
    FnArg, GenericArgument, Item, ItemFn, ItemMod, Pat, PathArguments, ReturnType, Visibility,
};

/// A public function that anybody can call.
#[derive(Debug)]
pub(super) struct Function {
    /// The name by which other crates call it: `my_trainer::advantages::grpo`.
    pub(super) path: String,
    pub(super) name: String,
    /// Its file, from the package, and its line.
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) parameters: Vec<(String, Type)>,
    pub(super) returns: Type,
}

/// The types that a suite can make of the arrays of a case, or take in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A number: `f32`.
    Number(String),
    /// Numbers: `&[f32]` and `&Vec<f32>` if borrowed, else `Vec<f32>`.
    Numbers {
        of: String,
        borrowed: bool,
    },
    /// A text: `&str` and `&String` if borrowed, else `String`.
    Text {
        borrowed: bool,
    },
    /// Texts: `&[String]` and `&Vec<String>` if borrowed, else `Vec<String>`.
    Texts {
        borrowed: bool,
    },
    Other,
}

/// The functions of a crate, and the files that are no Rust, each with the reason.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) functions: Vec<Function>,
    pub(super) unread: Vec<String>,
}

/// Scans the library `name`, whose first file is `root` in the folder `dir`.
pub(super) fn of(dir: &Path, name: &str, root: &Path) -> Scan {
    let mut scan = Scan::default();
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    scan.file(dir, root, name, &folder);
    scan
}

impl Scan {
    /// Scans one file; its modules are looked for in `folder`.
    fn file(&mut self, dir: &Path, file: &Path, module: &str, folder: &Path) {
        let name = file.display().to_string();
        let parsed = fs::read_to_string(dir.join(file))
            .map_err(|error| error.to_string())
            .and_then(|text| Ok((syn::parse_file(&text).map_err(|e| e.to_string())?, text)));
        match parsed {
            Ok((parsed, text)) => {
                let source = Source { dir, name: &name, text: &text };
                self.items(&source, parsed.items, module, folder);
            }
            Err(why) => self.unread.push(format!("{name}: {why}")),
        }
    }

    fn items(&mut self, source: &Source<'_>, items: Vec<Item>, module: &str, folder: &Path) {
        for item in items {
            match item {
                Item::Fn(item) if is_public(&item.vis) && !is_conditional(&item.attrs) => {
                    self.functions.extend(source.function(item, module));
                }
                Item::Mod(item) if is_public(&item.vis) && !is_conditional(&item.attrs) => {
                    self.module(source, item, module, folder);
                }
                _ => {}
            }
        }
    }

    fn module(&mut self, source: &Source<'_>, item: ItemMod, module: &str, folder: &Path) {
        let name = item.ident.to_string();
        let path = format!("{module}::{name}");
        let folder = folder.join(name.trim_start_matches("r#"));
        match item.content {
            Some((_, items)) => self.items(source, items, &path, &folder),
            None => {
                let files = [folder.with_extension("rs"), folder.join("mod.rs")];
                // A file at a `#[path]` of its own is not followed.
                if let Some(file) = files.iter().find(|file| source.dir.join(file).is_file()) {
                    self.file(source.dir, file, &path, &folder);
                }
            }
        }
    }
}

/// A file while it is read.
struct Source<'a> {
    dir: &'a Path,
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// The function, where a plain call reaches it.
    fn function(&self, item: ItemFn, module: &str) -> Option<Function> {
        let signature = item.sig;
        let plain = signature.asyncness.is_none()
            && matches!(signature.safety, syn::Safety::Default)
            && signature.generics.type_params().next().is_none()
            && signature.generics.const_params().next().is_none();
        if !plain {
            return None;
        }
        let name = signature.ident.to_string();
        let mut parameters = Vec::new();
        for input in &signature.inputs {
            let FnArg::Typed(input) = input else { return None };
            let Pat::Ident(pattern) = &*input.pat else { return None };
            parameters.push((pattern.ident.to_string(), type_of(&input.ty)));
        }
        let returns = match &signature.output {
            ReturnType::Default => Type::Other,
            ReturnType::Type(_, returned) => type_of(returned),
        };
        let here = |line: &str| line.contains(&format!("fn {name}"));
        let line = self.text.lines().position(here).map_or(1, |index| index + 1);
        let path = format!("{module}::{name}");
        Some(Function { path, name, file: self.name.to_owned(), line, parameters, returns })
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether it may not be there when the suite is compiled.
fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg"))
}

fn type_of(given: &syn::Type) -> Type {
    match given {
        syn::Type::Reference(given) if given.mutability.is_none() => match &*given.elem {
            syn::Type::Slice(slice) => many(&slice.elem, true),
            syn::Type::Path(path) if path.path.is_ident("str") => Type::Text { borrowed: true },
            elem => match type_of(elem) {
                Type::Numbers { of, borrowed: false } => Type::Numbers { of, borrowed: true },
                Type::Texts { borrowed: false } => Type::Texts { borrowed: true },
                Type::Text { borrowed: false } => Type::Text { borrowed: true },
                _ => Type::Other,
            },
        },
        syn::Type::Path(given) if given.qself.is_none() => match number(given) {
            Some(number) => Type::Number(number),
            None if given.path.is_ident("String") => Type::Text { borrowed: false },
            None => vector(given),
        },
        _ => Type::Other,
    }
}

/// The type `Vec<T>` of something known.
fn vector(given: &syn::TypePath) -> Type {
    let [segment] = &given.path.segments.iter().collect::<Vec<_>>()[..] else { return Type::Other };
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Type::Other };
    match arguments.args.first() {
        Some(GenericArgument::Type(of)) if segment.ident == "Vec" && arguments.args.len() == 1 => {
            many(of, false)
        }
        _ => Type::Other,
    }
}

fn many(of: &syn::Type, borrowed: bool) -> Type {
    match type_of(of) {
        Type::Number(of) => Type::Numbers { of, borrowed },
        Type::Text { borrowed: false } => Type::Texts { borrowed },
        _ => Type::Other,
    }
}

/// The numbers that can be cast to and from.
fn number(given: &syn::TypePath) -> Option<String> {
    let name = given.path.get_ident()?.to_string();
    let numbers = ["f64", "f32", "i64", "i32", "u64", "u32", "usize", "bool"];
    numbers.contains(&&*name).then_some(name)
}

impl Function {
    /// Where it is: `src/advantages.rs:12`.
    pub(super) fn at(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}
