//! `PodSpec`: what pods and the templates of all workloads have in common.
//!
//! Everything works on the tree: defaults must tell absent from zero, and validation would pay for decoding a second
//! form of an object it reads once.

pub(crate) mod containers_of;
mod defaults;
mod image;
mod options;

pub use defaults::set_defaults;
pub use options::PodValidationOptions;

use pintle_machinery::{ErrorList, FieldPath, Value};

/// What is wrong with a spec; `metadata` is that of the pod or template around it.
pub fn validate(
    _spec: &Value,
    _metadata: Option<&Value>,
    _path: &FieldPath,
    _options: &PodValidationOptions,
) -> ErrorList {
    ErrorList::new()
}

/// What the author should know of a pod or template (`metadata` and `spec`) that is accepted all the same.
pub fn warnings(_template: &Value, _old: Option<&Value>, _path: &FieldPath) -> Vec<String> {
    Vec::new()
}

/// Takes out the fields of features that are off, unless the stored spec uses them already.
pub fn drop_disabled_fields(_spec: &mut Value, _old: Option<&Value>) {}
