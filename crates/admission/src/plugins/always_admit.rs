//! `AlwaysAdmit`: admits every write
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#alwaysadmit>).

use crate::{AdmissionPlugin, AdmissionRequest, Steps};

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysAdmit;

impl AdmissionPlugin for AlwaysAdmit {
    fn name(&self) -> &'static str {
        "AlwaysAdmit"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, _: &AdmissionRequest<'_>) -> bool {
        false
    }
}
