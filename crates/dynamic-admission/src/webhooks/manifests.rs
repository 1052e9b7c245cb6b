//! Requirements of webhook configurations in static manifests, besides those of webhook configurations in the API.

use crate::static_manifests::{ManifestKind, ManifestKinds};
use pintle_go_forms::quote;
use pintle_machinery::{Value, ValueExt, meta::ObjectMeta};
use std::path::Path;

/// The manifests of `MutatingAdmissionWebhook`.
pub(super) static MUTATING: ManifestKinds<1> = kinds("MutatingWebhookConfiguration");
/// The manifests of `ValidatingAdmissionWebhook`.
pub(super) static VALIDATING: ManifestKinds<1> = kinds("ValidatingWebhookConfiguration");

const fn kinds(name: &'static str) -> ManifestKinds<1> {
    ManifestKinds {
        subject: "webhook",
        kinds: [ManifestKind { name, check: check_clients }],
        check_all: |_| Ok(()),
        scheme: "pkg/admission/plugin/webhook/manifest/loader/loader.go:41",
    }
}

/// Requires that webhooks are named by URLs: services may not be known yet.
fn check_clients(configuration: &Value, file: &Path) -> Result<(), String> {
    for webhook in configuration.items_at("webhooks") {
        let why = if webhook.at("clientConfig.service").is_some_and(|service| !service.is_null()) {
            "clientConfig.service is not supported for static manifests; use clientConfig.url instead"
        } else if webhook.str_at("clientConfig.url").is_empty() {
            "clientConfig.url is required for static manifests"
        } else {
            continue;
        };
        let (name, file) = (quote(webhook.str_at("name")), quote(&file.to_string_lossy()));
        return Err(format!("webhook {name} in {} (file {file}): {why}", quote(configuration.name())));
    }
    Ok(())
}
