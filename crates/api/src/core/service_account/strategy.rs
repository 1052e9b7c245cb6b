//! The strategy of service accounts.

use crate::rules;
use pintle_machinery::{ErrorList, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::{RequestContext, Strategy};

/// A deprecated annotation that limits the secrets that pods of the account may use.
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) struct ServiceAccountStrategy;

impl Strategy for ServiceAccountStrategy {
    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        keep_secret_names(object);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        rules::metadata(object, true)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, _old: &Value) {
        keep_secret_names(object);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(rules::metadata(object, true));
        errors
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> Vec<String> {
        if old.annotation(ENFORCE_MOUNTABLE_SECRETS).is_some() { Vec::new() } else { warnings(object) }
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Drops all fields but the names of the secrets, which are always in the account's own namespace.
fn keep_secret_names(object: &mut Value) {
    for secret in object.items_at_mut("secrets") {
        *secret = match secret.str_at("name") {
            "" => json!({}),
            name => json!({"name": name}),
        };
    }
}

fn warnings(object: &Value) -> Vec<String> {
    match object.annotation(ENFORCE_MOUNTABLE_SECRETS) {
        Some(_) => vec![format!(
            "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to \
             isolate access to mounted secrets"
        )],
        None => Vec::new(),
    }
}
