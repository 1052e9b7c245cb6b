//! Names of definitions, operations and paths.

use pintle_machinery::GroupVersion;

/// The name of a type's definition: `k8s.io/api/core/v1` and `Pod` make `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(package: &str, name: &str) -> String {
    let (host, path) = package.split_once('/').unwrap_or((package, ""));
    let host = host.rsplit('.').collect::<Vec<_>>().join(".");
    let path = path.replace('/', ".");
    if path.is_empty() { format!("{host}.{name}") } else { format!("{host}.{path}.{name}") }
}

/// The name of the definition of a type of the schema, such as `k8s.io/api/core/v1.Pod`.
pub(crate) fn definition_of(type_name: &str) -> String {
    let (package, name) = type_name.rsplit_once('.').unwrap_or(("", type_name));
    definition(package, name)
}

/// A definition of the meta package.
pub(crate) fn meta(name: &str) -> String {
    definition("k8s.io/apimachinery/pkg/apis/meta/v1", name)
}

/// The prefix of all paths of a version.
pub(crate) fn root(group_version: &GroupVersion) -> String {
    let root = if group_version.group.is_empty() { "api" } else { "apis" };
    format!("/{root}/{group_version}")
}

/// A group as part of operation ids: `Core`, `Apps`, `RbacAuthorization`.
pub(crate) fn group_in_id(group: &str) -> String {
    valid_id(group_stem(group), true)
}

/// A group as a tag: `core`, `apps`, `rbacAuthorization`.
pub(crate) fn group_in_tag(group: &str) -> String {
    valid_id(group_stem(group), false)
}

fn group_stem(group: &str) -> &str {
    let group = if group.is_empty() { "core" } else { group };
    group.strip_suffix(".k8s.io").unwrap_or(group)
}

/// A name as part of an operation id: letters, digits (not at the start), and underscores. Other characters are dropped
/// and capitalize the following letter.
pub(crate) fn valid_id(name: &str, mut capitalize: bool) -> String {
    let mut id = String::with_capacity(name.len());
    for (position, c) in name.char_indices() {
        let belongs = c.is_alphabetic() || c == '_' || (position > 0 && c.is_numeric());
        match (belongs, std::mem::replace(&mut capitalize, !belongs)) {
            (false, _) => {}
            (true, true) => id.extend(c.to_uppercase()),
            (true, false) => id.push(c),
        }
    }
    id
}

/// The word with its first letter in upper case.
pub(crate) fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_reference() {
        assert_eq!(definition_of("k8s.io/api/core/v1.Pod"), "io.k8s.api.core.v1.Pod");
        assert_eq!(
            definition_of("k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIService"),
            "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
        );
        for (group, id, tag) in [
            ("", "Core", "core"),
            ("apps", "Apps", "apps"),
            ("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization"),
            ("flowcontrol.apiserver.k8s.io", "FlowcontrolApiserver", "flowcontrolApiserver"),
            ("crd-openapi.example.com", "CrdOpenapiExampleCom", "crdOpenapiExampleCom"),
            ("1a2.b", "A2B", "A2B"),
        ] {
            assert_eq!((group_in_id(group).as_str(), group_in_tag(group).as_str()), (id, tag));
        }
    }
}
