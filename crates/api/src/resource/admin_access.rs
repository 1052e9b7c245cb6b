//! Admin access to devices: only namespaces with a certain label may contain claims with it (<https://kep.k8s.io/5018>).

use pintle_machinery::{ErrorList, FieldError, FieldPath, GroupResource, Value, ValueExt};
use pintle_registry::{BoxFuture, RequestContext};

/// The label of the namespace; its value must be `true`.
const LABEL: &str = "resource.kubernetes.io/admin-access";

/// Reviews a new claim.
pub(super) fn review_claim<'a>(
    context: &'a RequestContext<'a>,
    claim: &'a Value,
    old: Option<&'a Value>,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    review(context, claim.at("spec")?, old, errors)
}

/// Reviews a new template of claims.
pub(super) fn review_template<'a>(
    context: &'a RequestContext<'a>,
    template: &'a Value,
    old: Option<&'a Value>,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    review(context, template.at("spec.spec")?, old, errors)
}

fn review<'a>(
    context: &'a RequestContext<'a>,
    spec: &'a Value,
    old: Option<&'a Value>,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    // The spec is immutable.
    if old.is_some() {
        return None;
    }
    let asks = |request: &Value| request.at("exactly.adminAccess") == Some(&Value::Bool(true));
    let index = spec.items_at("devices.requests").iter().position(asks)?;
    // The path is that of the field in the first beta of the group, for templates, too.
    let path = FieldPath::new("spec").child("devices").child("requests").index(index).child("adminAccess");
    Some(Box::pin(async move {
        if let Err(error) = check_namespace(context, path).await {
            errors.insert(0, error);
        }
    }))
}

/// The path of the first allocated device of a claim with admin access.
pub(super) fn granted(claim: &Value) -> Option<FieldPath> {
    let results = claim.items_at("status.allocation.devices.results");
    let index = results.iter().position(|result| result.at("adminAccess") == Some(&Value::Bool(true)))?;
    let results = FieldPath::new("status").child("allocation").child("devices").child("results");
    Some(results.index(index).child("adminAccess"))
}

/// Checks that the namespace of the request has the label.
///
/// # Errors
/// The error for the client, at this path.
pub(super) async fn check_namespace(context: &RequestContext<'_>, path: FieldPath) -> Result<(), FieldError> {
    let resource = GroupResource::new("", "namespaces");
    match context.registry.get(&resource, "", context.namespace).await {
        Ok(namespace) => {
            let labels = namespace.map_at("metadata.labels");
            match labels.get(LABEL).and_then(Value::as_str) {
                Some("true") => Ok(()),
                _ => Err(FieldError::forbidden(
                    &path,
                    format!(
                        "admin access to devices requires the `{LABEL}: true` label on the containing namespace"
                    ),
                )),
            }
        }
        Err(status) => {
            let why = format!("could not retrieve namespace to verify admin access: {}", status.message);
            Err(FieldError::internal(&path, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::{
        Registry, WriteOptions,
        testing::{MemoryRegistry, now, with_context},
    };

    fn messages(label: &str, claim: &Value, old: Option<&Value>) -> Vec<String> {
        let registry = MemoryRegistry::default();
        let namespace = json!({"metadata": {"name": "n", "labels": {LABEL: label}}});
        now(registry.create(&GroupResource::new("", "namespaces"), "", namespace, WriteOptions::default()))
            .unwrap();
        with_context(&registry, "n", false, |context| {
            let mut errors = vec![FieldError::required(&FieldPath::new("other"), "")];
            if let Some(review) = review_claim(context, claim, old, &mut errors) {
                now(review);
            }
            errors.iter().map(ToString::to_string).collect()
        })
    }

    #[test]
    fn admin_access_needs_the_label() {
        let claim = |access: bool| json!({"spec": {"devices": {"requests": [{}, {"exactly": {"adminAccess": access}}]}}});
        let refusal = "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the \
                       `resource.kubernetes.io/admin-access: true` label on the containing namespace";
        let other = "other: Required value";
        assert_eq!(messages("false", &claim(true), None), [refusal, other]);
        assert_eq!(messages("True", &claim(true), None), [refusal, other]);
        assert_eq!(messages("true", &claim(true), None), [other]);
        assert_eq!(messages("false", &claim(false), None), [other]);
        assert_eq!(messages("false", &claim(true), Some(&claim(true))), [other]);
    }

    #[test]
    fn the_first_allocated_device_with_admin_access_is_named() {
        let claim = json!({"status": {"allocation": {"devices": {"results": [
            {"adminAccess": false}, {"adminAccess": true}, {"adminAccess": true},
        ]}}}});
        let path = granted(&claim).expect("a device has admin access");
        assert_eq!(path.to_string(), "status.allocation.devices.results[1].adminAccess");
        assert!(granted(&json!({})).is_none());
    }
}
