//! Names of definitions and operations.

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

/// A group in operation ids: `Core`, `Apps`, `RbacAuthorization`.
pub(crate) fn group_in_id(group: &str) -> String {
    group_words(group).map(capitalized).collect()
}

/// A group in tags: `core`, `apps`, `rbacAuthorization`.
pub(crate) fn group_in_tag(group: &str) -> String {
    let mut words = group_words(group);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |tag, word| tag + &capitalized(word))
}

fn group_words(group: &str) -> impl Iterator<Item = &str> {
    let group = if group.is_empty() { "core" } else { group };
    group.strip_suffix(".k8s.io").unwrap_or(group).split('.')
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
        ] {
            assert_eq!((group_in_id(group).as_str(), group_in_tag(group).as_str()), (id, tag));
        }
    }
}
