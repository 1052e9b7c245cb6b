//! How strict validation is: what an object already had stays allowed when rules became stricter.

use pintle_machinery::{Value, ValueExt};

/// What validation lets pass.
#[derive(Debug, Clone, Default)]
pub struct PodValidationOptions {
    /// Whether the spec is a pod's own and not a template's.
    pub resource_is_pod: bool,
}

impl PodValidationOptions {
    /// For a pod or a template, given whole, and the stored one on update.
    pub fn new(_new: &Value, _old: Option<&Value>) -> PodValidationOptions {
        PodValidationOptions::default()
    }

    /// The options for a template in a workload, and the stored one on update.
    pub fn for_template(new: &Value, old: Option<&Value>) -> PodValidationOptions {
        PodValidationOptions::new(new, old)
    }

    /// The options for a pod, and the stored one on update.
    pub fn for_pod(new: &Value, old: Option<&Value>) -> PodValidationOptions {
        let _ = new.at("spec");
        PodValidationOptions { resource_is_pod: true, ..PodValidationOptions::new(new, old) }
    }
}
