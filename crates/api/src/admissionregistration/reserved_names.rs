//! The names that are reserved for static manifests (<https://kep.k8s.io/5793>).

use crate::plain::PlainStrategy;
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value,
    meta::{ObjectMeta, STATIC_MANIFEST_SUFFIX},
};

/// The strategy of a kind whose objects may be in manifests, too: clients cannot create them with reserved names. Without
/// the feature gate `ManifestBasedAdmissionControlConfig`, they are warned.
pub(super) const fn with_reserved_names(strategy: PlainStrategy) -> PlainStrategy {
    strategy.checked_of_clients(refuse_reserved).warned_on_create(warn_of_creation).warned_on_update(warn)
}

fn refuse_reserved(object: &Value) -> ErrorList {
    let name = object.name();
    match enabled(Gate::ManifestBasedAdmissionControlConfig) && name.ends_with(STATIC_MANIFEST_SUFFIX) {
        true => vec![FieldError::invalid(&FieldPath::new("metadata").child("name"), name, why())],
        false => Vec::new(),
    }
}

fn warn_of_creation(object: &Value) -> Vec<String> {
    match enabled(Gate::ManifestBasedAdmissionControlConfig) {
        true => Vec::new(),
        false => warn(object),
    }
}

fn warn(object: &Value) -> Vec<String> {
    match object.name().ends_with(STATIC_MANIFEST_SUFFIX) {
        true => vec![format!("metadata.name: {}", why())],
        false => Vec::new(),
    }
}

fn why() -> String {
    format!(
        "names ending with {} are reserved for static manifest-based configurations and cannot be managed via the API",
        quote(STATIC_MANIFEST_SUFFIX)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use pintle_machinery::json;

    #[test]
    fn reserved_names_are_refused_where_there_may_be_manifests_and_warned_of_elsewhere() {
        let object = |name: &str| json!({"metadata": {"name": name}});
        let (reserved, other) = (object("a.static.k8s.io"), object("static.k8s.io"));
        let check = |is_open: bool, refusals: usize, creation_warnings: usize| {
            let _gates = override_gates(
                &FeatureGates::default().with(Gate::ManifestBasedAdmissionControlConfig, is_open),
            );
            assert_eq!(refuse_reserved(&reserved).len(), refusals);
            assert_eq!(warn_of_creation(&reserved).len(), creation_warnings);
            assert_eq!(warn(&reserved).len(), 1);
            assert!(refuse_reserved(&other).is_empty() && warn_of_creation(&other).is_empty());
            assert!(warn(&other).is_empty());
        };
        check(false, 0, 1);
        check(true, 1, 0);
    }
}
