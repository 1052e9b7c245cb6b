//! Names the Go schemes that some messages to clients mention.

use pintle_go_forms::quote;

/// The source line of the scheme with the kinds that webhooks answer with.
pub const WEBHOOKS: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:71";

/// The source line of the scheme with the kinds of the server that serves a group. The servers of the chain have a
/// scheme each.
pub fn scheme_of(group: &str) -> &'static str {
    match group {
        "apiextensions.k8s.io" => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
        "apiregistration.k8s.io" => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

/// The name of the package with the internal types of a group. The events of both groups are one type.
pub fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or_default(),
    }
}

/// The message for a kind that a scheme does not know.
pub fn not_registered(kind: &str, api_version: &str, scheme: &str) -> String {
    format!("{} in scheme {}", unknown_kind(kind, api_version), quote(scheme))
}

/// The message for a kind that an object names without a version, as a patch can leave it, where the group's own scheme
/// does not know the kind.
pub fn not_registered_internally(kind: &str, group: &str) -> String {
    let (kind, of, scheme) = (quote(kind), quote(group), quote(scheme_of(group)));
    format!("no kind {kind} is registered for the internal version of group {of} in scheme {scheme}")
}

/// [`not_registered`] where the message names no scheme.
pub fn unknown_kind(kind: &str, api_version: &str) -> String {
    format!("no kind {} is registered for version {}", quote(kind), quote(api_version))
}
