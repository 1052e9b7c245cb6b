//! `DenyServiceExternalIPs`: services get no external addresses that they did not have before
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#denyserviceexternalips>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{Status, Value, ValueExt};
use pintle_registry::BoxFuture;
use std::{collections::HashSet, future::ready};

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct DenyServiceExternalIps;

impl AdmissionPlugin for DenyServiceExternalIps {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && request.is_for("", "services")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let addresses =
            |service: &'a Value| service.items_at("spec.externalIPs").iter().filter_map(Value::as_str);
        let request = &*request;
        let before: HashSet<&str> = request.old_object.into_iter().flat_map(addresses).collect();
        let is_new = request
            .object
            .items_at("spec.externalIPs")
            .iter()
            .any(|address| !before.contains(address.as_str().unwrap_or_default()));
        Box::pin(ready(match is_new {
            true => Err(request.forbidden("Use of external IPs is denied by admission control")),
            false => Ok(()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn only_known_addresses_are_admitted() {
        let service =
            |addresses: &[&str]| json!({"metadata": {"name": "s"}, "spec": {"externalIPs": addresses}});
        let call = |operation, now: &[&str], old: Option<&Value>| {
            admit(&DenyServiceExternalIps, &Objects::default(), operation, "services", "", service(now), old)
                .is_ok()
        };
        assert!(call(Operation::Create, &[], None));
        assert!(!call(Operation::Create, &["1.2.3.4"], None));
        let old = service(&["1.2.3.4", "1.2.3.5"]);
        assert!(call(Operation::Update, &["1.2.3.5"], Some(&old)));
        assert!(!call(Operation::Update, &["1.2.3.5", "1.2.3.6"], Some(&old)));
    }
}
