//! Input classes: what a contract calls its cases.

use crate::contract::definition::Definition;
use crate::contract::options::AnyOptions;
use crate::value::place::Dtype;
use crate::value::record::AnyRecord;

/// A class of inputs that a contract names: reports count how often each was generated.
pub struct Class<D: Definition> {
    /// The label: `constant-group`.
    pub id: &'static str,
    /// What belongs to it.
    pub meaning: &'static str,
    /// Whether a case does.
    pub contains: fn(&D::Case, &D::Options) -> bool,
    /// Whether cases of this class are generated under these options at this dtype.
    pub generated: fn(&D::Options, Dtype) -> bool,
}

type Contains = dyn Fn(&dyn AnyRecord, &dyn AnyOptions) -> bool + Send + Sync;
type Generated = dyn Fn(&dyn AnyOptions, Dtype) -> bool + Send + Sync;

/// A class of inputs of any contract.
pub struct AnyClass {
    /// The label: `constant-group`.
    pub id: &'static str,
    /// What belongs to it.
    pub meaning: &'static str,
    contains: Box<Contains>,
    generated: Box<Generated>,
}

impl AnyClass {
    /// Whether a case belongs to it.
    pub fn contains(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> bool {
        (self.contains)(case, options)
    }

    /// Whether cases of this class are generated under these options at this dtype.
    pub fn is_generated(&self, options: &dyn AnyOptions, dtype: Dtype) -> bool {
        (self.generated)(options, dtype)
    }
}

impl<D: Definition<Options: AnyOptions>> From<Class<D>> for AnyClass {
    fn from(class: Class<D>) -> Self {
        let Class { id, meaning, contains, generated } = class;
        AnyClass {
            id,
            meaning,
            contains: Box::new(move |case, options| contains(case.typed(), options.typed())),
            generated: Box::new(move |options, dtype| generated(options.typed(), dtype)),
        }
    }
}
