//! The Go schemes of kube-apiserver: the kinds that a decoder knows, and what messages to clients say about them.

use crate::GroupVersionKind;
use pintle_go_forms::quote;
use pintle_schema::{Schema, SchemaRef};

/// The source line of the scheme with the kinds that webhooks answer with.
pub const WEBHOOKS: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:71";

/// The source line of the scheme with the kinds of options, such as `DeleteOptions`.
pub const OPTIONS: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";

/// The source line of the scheme with the kinds of the server of definitions.
const DEFINITIONS: &str = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55";

/// The source line of the scheme with the kinds of the server that serves a group. The servers of the chain have a
/// scheme each.
pub fn scheme_of(group: &str) -> &'static str {
    match group {
        "apiextensions.k8s.io" => DEFINITIONS,
        "apiregistration.k8s.io" => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

/// The kinds that each scheme has in any version.
pub const UNVERSIONED: [&str; 5] = ["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"];

/// The kinds that a scheme has in each of its versions, with one type.
pub const OF_EACH_VERSION: [&str; 7] = [
    "WatchEvent",
    "ListOptions",
    "GetOptions",
    "DeleteOptions",
    "CreateOptions",
    "UpdateOptions",
    "PatchOptions",
];

/// The type of a kind that a scheme knows: that of the server of a group ([`scheme_of`]), or [`OPTIONS`].
pub fn registered(kind: &GroupVersionKind, scheme: &str) -> Option<SchemaRef<'static>> {
    let schema = Schema::builtin();
    let GroupVersionKind { group, version, kind: name } = kind;
    let is_known = match name.as_str() {
        name if UNVERSIONED.contains(&name) => true,
        "DeleteOptions" | "CreateOptions" | "UpdateOptions" if scheme == OPTIONS => true,
        "WatchEvent" if scheme == DEFINITIONS => true,
        name if OF_EACH_VERSION.contains(&name) => match scheme {
            OPTIONS => group == "meta.k8s.io" && version == "v1",
            _ => scheme_of(group) == scheme && schema.has_kinds_of(group, version) || is_core(kind),
        },
        "Table" | "TableOptions" | "PartialObjectMetadata" | "PartialObjectMetadataList" => {
            scheme == OPTIONS && group == "meta.k8s.io" && matches!(version.as_str(), "v1" | "v1beta1")
        }
        "List" => scheme == scheme_of("") && is_core(kind),
        _ => {
            let is_in_scheme = scheme != OPTIONS && scheme_of(group) == scheme;
            return schema.own_kind(group, version, name).filter(|_| is_in_scheme);
        }
    };
    schema.meta_kind(name).filter(|_| is_known)
}

/// Whether a kind is of the version `v1`, which has no group.
fn is_core(kind: &GroupVersionKind) -> bool {
    kind.group.is_empty() && kind.version == "v1"
}

/// The message for an object of one type where another one is wanted; `wanted` is the name of its Go type.
pub fn unknown_conversion(found: SchemaRef<'_>, wanted: &str) -> String {
    let package = found.package().rsplit('/').next().unwrap_or_default();
    format!("converting ({package}.{}) to ({wanted}): unknown conversion", found.name())
}

/// The message for an object of one type where a version of another group is wanted.
pub fn unsuitable(found: SchemaRef<'_>, version: &str, scheme: &str) -> String {
    let package = found.package().rsplit('/').next().unwrap_or_default();
    let (version, scheme) = (quote(version), quote(scheme));
    format!("{package}.{} is not suitable for converting to {version} in scheme {scheme}", found.name())
}

/// The name of the package with the internal types of a group. The events of both groups are one type.
pub fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        // Go has a meaning of its own for a package named `internal`.
        "internal.apiserver.k8s.io" => "apiserverinternal",
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
    format!("{} in scheme {}", unknown_internal_kind(kind, group), quote(scheme_of(group)))
}

/// [`not_registered`] where the message names no scheme.
pub fn unknown_kind(kind: &str, api_version: &str) -> String {
    match api_version.rsplit_once('/').unwrap_or(("", api_version)) {
        (group, INTERNAL) => unknown_internal_kind(kind, group),
        _ => format!("no kind {} is registered for version {}", quote(kind), quote(api_version)),
    }
}

/// The name of the version of the types in memory, which no body may have.
const INTERNAL: &str = "__internal";

fn unknown_internal_kind(kind: &str, group: &str) -> String {
    format!("no kind {} is registered for the internal version of group {}", quote(kind), quote(group))
}

/// The message for an object that names no version, where the wanted kind does not tell it; `shown` is the body.
pub fn missing_version(shown: &str) -> String {
    format!("Object 'apiVersion' is missing in '{shown}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_packages_have_the_first_word_of_their_group() {
        let check = |group: &str, expected: &str| assert_eq!(internal_package(group), expected, "{group}");
        check("", "core");
        check("events.k8s.io", "core");
        check("apps", "apps");
        check("certificates.k8s.io", "certificates");
        check("internal.apiserver.k8s.io", "apiserverinternal");
    }

    #[test]
    fn a_message_tells_the_version_that_has_no_such_kind() {
        let cases = [
            ("v9", r#"no kind "Pod" is registered for version "v9" in scheme "s""#),
            ("apps/v9", r#"no kind "Pod" is registered for version "apps/v9" in scheme "s""#),
            (
                "__internal",
                r#"no kind "Pod" is registered for the internal version of group "" in scheme "s""#,
            ),
            (
                "x.y/__internal",
                r#"no kind "Pod" is registered for the internal version of group "x.y" in scheme "s""#,
            ),
        ];
        for (version, expected) in cases {
            assert_eq!(not_registered("Pod", version, "s"), expected, "{version}");
        }
    }

    #[test]
    fn a_scheme_knows_its_kinds_in_their_versions() {
        let check = |scheme: &str, group: &str, version: &str, name: &str, package: Option<&str>| {
            let kind = GroupVersionKind::new(group, version, name);
            let found = registered(&kind, scheme).map(|found| unknown_conversion(found, "x.Y"));
            let expected =
                package.map(|package| format!("converting ({package}.{name}) to (x.Y): unknown conversion"));
            assert_eq!(found, expected, "{scheme} {kind}");
        };
        let (api, definitions) = (scheme_of("apps"), scheme_of("apiextensions.k8s.io"));
        for scheme in [api, definitions, OPTIONS] {
            check(scheme, "example.com", "v9", "Status", Some("v1"));
            check(scheme, "apps", "v9", "PatchOptions", None);
            check(scheme, "apps", "v1", "Thing", None);
        }
        check(api, "apps", "v1", "Deployment", Some("v1"));
        check(api, "apps", "v1beta1", "Deployment", Some("v1beta1"));
        check(api, "", "v1", "Deployment", None);
        check(api, "apps", "v1beta1", "GetOptions", Some("v1"));
        check(api, "", "v1", "List", Some("v1"));
        check(api, "apps", "v1", "List", None);
        check(api, "meta.k8s.io", "v1", "Table", None);
        check(api, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
        check(definitions, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", Some("v1"));
        check(definitions, "", "v1", "WatchEvent", Some("v1"));
        check(definitions, "", "v1", "List", None);
        check(api, "apps", "v9", "WatchEvent", None);
        check(definitions, "apps", "v9", "WatchEvent", Some("v1"));
        check(OPTIONS, "apps", "v1", "CreateOptions", Some("v1"));
        check(OPTIONS, "apps", "v1", "GetOptions", None);
        check(OPTIONS, "meta.k8s.io", "v1", "GetOptions", Some("v1"));
        check(OPTIONS, "meta.k8s.io", "v1beta1", "Table", Some("v1"));
        check(OPTIONS, "", "v1", "Pod", None);
    }
}
