//! The kind that a patch of mutating admission leaves an object with.

use pintle_machinery::{
    GroupVersion, GroupVersionKind, Status,
    codec::json,
    scheme::{not_registered, registered, scheme_of},
};
use pintle_schema::{Schema, SchemaRef};

/// Whether a kind has a type, which custom resources have not.
pub(crate) fn is_built_in(kind: &GroupVersionKind) -> bool {
    Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind).is_some()
}

/// The kind that a JSON text names. Absent parts are empty.
///
/// # Errors
/// 500 for a malformed name.
pub(crate) fn type_meta(text: &[u8]) -> Result<GroupVersionKind, Status> {
    let named = json::type_meta(text).map_err(|error| {
        Status::internal_error(format!("couldn't get version/kind; json parse error: {error}"))
    })?;
    let version = GroupVersion::parse(&named.api_version).ok_or_else(|| {
        Status::internal_error(format!("unexpected GroupVersion string: {}", named.api_version))
    })?;
    Ok(version.with_kind(named.kind))
}

/// The kind that a patched object of a built-in kind names; its JSON is `text`. Absent names are those of the expected
/// kind.
///
/// # Errors
/// 500 for a malformed name, and for a kind that the server does not know.
pub(crate) fn patched_kind(text: &[u8], expected: &GroupVersionKind) -> Result<GroupVersionKind, Status> {
    let mut found = type_meta(text)?;
    if found.version.is_empty() && (found.group.is_empty() || found.group == expected.group) {
        found.group.clone_from(&expected.group);
        found.version.clone_from(&expected.version);
    }
    if found.kind.is_empty() {
        found.kind.clone_from(&expected.kind);
    }
    built_in_type(&found, expected)?;
    Ok(found)
}

/// The type of a kind in the scheme of the expected one.
///
/// # Errors
/// 500 for a kind that the server does not know.
pub(crate) fn built_in_type(
    found: &GroupVersionKind,
    expected: &GroupVersionKind,
) -> Result<SchemaRef<'static>, Status> {
    let scheme = scheme_of(&expected.group);
    registered(found, scheme).ok_or_else(|| {
        let version = found.group_version().to_string();
        Status::internal_error(not_registered(&found.kind, &version, scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_of_the_kind_that_it_names() {
        let expected = GroupVersionKind::new("apps", "v1", "Deployment");
        let check = |text: &str, found: Result<GroupVersionKind, &str>| {
            let result = patched_kind(text.as_bytes(), &expected).map_err(|status| status.message);
            assert_eq!(result, found.map_err(|why| format!("Internal error occurred: {why}")), "{text}");
        };
        check(r#"{"apiVersion":"apps/v1","kind":"Deployment"}"#, Ok(expected.clone()));
        check("{}", Ok(expected.clone()));
        check(r#"{"apiVersion":"/"}"#, Ok(expected.clone()));
        check(r#"{"apiVersion":"apps/"}"#, Ok(expected.clone()));
        check(r#"{"kind":"ReplicaSet"}"#, Ok(GroupVersionKind::new("apps", "v1", "ReplicaSet")));
        let unknown = r#"no kind "Deployment" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#;
        check(r#"{"apiVersion":"/v1"}"#, Err(unknown));
        check(r#"{"apiVersion":"a/b/c"}"#, Err("unexpected GroupVersion string: a/b/c"));
        let number = "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field \
                      .kind of type string";
        check(r#"{"kind":5}"#, Err(number));
    }
}
