//! `AlwaysDeny`: refuses every write
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#alwaysdeny>).

use crate::{AdmissionPlugin, AdmissionRequest, Steps};
use pintle_machinery::Status;
use pintle_registry::BoxFuture;
use std::future::ready;

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysDeny;

impl AdmissionPlugin for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, _: &AdmissionRequest<'_>) -> bool {
        true
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(ready(Err(request.forbidden("admission control is denying all modifications"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Operation,
        testing::{Objects, admit},
    };
    use pintle_machinery::json;

    #[test]
    fn nothing_is_admitted() {
        let refused = admit(
            &AlwaysDeny,
            &Objects::default(),
            Operation::Create,
            "pods",
            "",
            json!({"metadata": {"name": "p"}}),
            None,
        );
        assert_eq!(
            refused.unwrap_err(),
            "pods \"p\" is forbidden: admission control is denying all modifications"
        );
    }
}
