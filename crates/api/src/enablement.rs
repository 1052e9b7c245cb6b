//! Lists the versions of the built-in groups with their default enablement, and the versions that introduced or removed resources.

use pintle_feature_gates::MinorVersion;
use pintle_machinery::GroupVersionResource;

/// The default state of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enablement {
    /// Served by default.
    Default,
    /// Served when enabled.
    OnDemand,
    /// Known, but without served resources: flags for many versions do not affect it.
    Registered,
}

use Enablement::{Default as On, OnDemand as Off, Registered as Gone};

/// Every version of every built-in group: group, version, enablement.
pub const VERSIONS: [(&str, &str, Enablement); 60] = [
    ("", "v1", On),
    ("admission.k8s.io", "v1", Gone),
    ("admission.k8s.io", "v1beta1", Gone),
    ("admissionregistration.k8s.io", "v1", On),
    ("admissionregistration.k8s.io", "v1beta1", Off),
    ("admissionregistration.k8s.io", "v1alpha1", Off),
    ("apiextensions.k8s.io", "v1", On),
    ("apiextensions.k8s.io", "v1beta1", Gone),
    ("apiregistration.k8s.io", "v1", On),
    ("apiregistration.k8s.io", "v1beta1", Gone),
    ("apps", "v1", On),
    ("apps", "v1beta2", Gone),
    ("apps", "v1beta1", Gone),
    ("authentication.k8s.io", "v1", On),
    ("authentication.k8s.io", "v1beta1", Off),
    ("authentication.k8s.io", "v1alpha1", Off),
    ("authorization.k8s.io", "v1", On),
    ("authorization.k8s.io", "v1beta1", Gone),
    ("autoscaling", "v2", On),
    ("autoscaling", "v1", On),
    ("batch", "v1", On),
    ("batch", "v1beta1", Gone),
    ("certificates.k8s.io", "v1", On),
    ("certificates.k8s.io", "v1beta1", Off),
    ("certificates.k8s.io", "v1alpha1", Off),
    ("coordination.k8s.io", "v1", On),
    ("coordination.k8s.io", "v1beta1", Off),
    ("coordination.k8s.io", "v1alpha2", Off),
    ("discovery.k8s.io", "v1", On),
    ("discovery.k8s.io", "v1beta1", Gone),
    ("events.k8s.io", "v1", On),
    ("events.k8s.io", "v1beta1", Gone),
    ("extensions", "v1beta1", Gone),
    ("flowcontrol.apiserver.k8s.io", "v1", On),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", Off),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", Off),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", Off),
    ("imagepolicy.k8s.io", "v1alpha1", Gone),
    ("internal.apiserver.k8s.io", "v1alpha1", Off),
    ("networking.k8s.io", "v1", On),
    ("networking.k8s.io", "v1beta1", Off),
    ("node.k8s.io", "v1", On),
    ("node.k8s.io", "v1beta1", Gone),
    ("node.k8s.io", "v1alpha1", Gone),
    ("policy", "v1", On),
    ("policy", "v1beta1", Gone),
    ("rbac.authorization.k8s.io", "v1", On),
    ("rbac.authorization.k8s.io", "v1beta1", Gone),
    ("rbac.authorization.k8s.io", "v1alpha1", Gone),
    ("resource.k8s.io", "v1", On),
    ("resource.k8s.io", "v1beta2", Off),
    ("resource.k8s.io", "v1beta1", Off),
    ("resource.k8s.io", "v1alpha3", Off),
    ("scheduling.k8s.io", "v1", On),
    ("scheduling.k8s.io", "v1beta1", Gone),
    ("scheduling.k8s.io", "v1alpha2", Off),
    ("storage.k8s.io", "v1", On),
    ("storage.k8s.io", "v1beta1", Off),
    ("storage.k8s.io", "v1alpha1", Off),
    ("storagemigration.k8s.io", "v1beta1", Off),
];

/// The resources that are newer than the oldest version that can be emulated: group, version, resource, and the version
/// that introduced them.
pub const INTRODUCED: [(&str, &str, &str, MinorVersion); 13] = [
    ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", MinorVersion::new(1, 36)),
    ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", MinorVersion::new(1, 36)),
    ("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicies", MinorVersion::new(1, 34)),
    ("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicybindings", MinorVersion::new(1, 34)),
    ("certificates.k8s.io", "v1beta1", "podcertificaterequests", MinorVersion::new(1, 35)),
    ("resource.k8s.io", "v1", "deviceclasses", MinorVersion::new(1, 34)),
    ("resource.k8s.io", "v1", "resourceclaims", MinorVersion::new(1, 34)),
    ("resource.k8s.io", "v1", "resourceclaimtemplates", MinorVersion::new(1, 34)),
    ("resource.k8s.io", "v1", "resourceslices", MinorVersion::new(1, 34)),
    ("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", MinorVersion::new(1, 36)),
    ("resource.k8s.io", "v1beta2", "devicetaintrules", MinorVersion::new(1, 36)),
    ("storage.k8s.io", "v1", "volumeattributesclasses", MinorVersion::new(1, 34)),
    ("storagemigration.k8s.io", "v1beta1", "storageversionmigrations", MinorVersion::new(1, 35)),
];

/// The resources that are older than the tracked version, and that an emulated version may have: group, version, resource,
/// and the version that removed them.
pub const REMOVED: [(&str, &str, &str, MinorVersion); 2] = [
    ("admissionregistration.k8s.io", "v1beta1", "validatingadmissionpolicies", MinorVersion::new(1, 34)),
    (
        "admissionregistration.k8s.io",
        "v1beta1",
        "validatingadmissionpolicybindings",
        MinorVersion::new(1, 34),
    ),
];

/// The version that introduced a resource, if it is newer than the oldest version that can be emulated.
pub fn introduced(resource: &GroupVersionResource) -> Option<MinorVersion> {
    find(&INTRODUCED, resource)
}

/// The version that removed a resource, if it is newer than the oldest version that can be emulated.
pub fn removed(resource: &GroupVersionResource) -> Option<MinorVersion> {
    find(&REMOVED, resource)
}

fn find(table: &[(&str, &str, &str, MinorVersion)], resource: &GroupVersionResource) -> Option<MinorVersion> {
    let is_it = |(group, version, plural, _): &&(&str, &str, &str, MinorVersion)| {
        *group == resource.group && *version == resource.version && *plural == resource.resource
    };
    table.iter().find(is_it).map(|(.., at)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_declared_is_what_the_table_says() {
        let config = crate::Config::default();
        let version_of = |resource: &pintle_registry::Resource| {
            (resource.resource.group.clone(), resource.resource.version.clone())
        };
        let listed = |enablement: Enablement| -> BTreeSet<(String, String)> {
            // Two groups belong to other servers of the delegation chain.
            let rows = VERSIONS.iter().filter(|(group, _, own)| {
                *own == enablement && !["apiextensions.k8s.io", "apiregistration.k8s.io"].contains(group)
            });
            rows.map(|(group, version, _)| ((*group).to_owned(), (*version).to_owned())).collect()
        };
        let by_default: BTreeSet<_> = crate::resources(&config).iter().map(version_of).collect();
        assert_eq!(by_default, listed(On));
        let on_demand: BTreeSet<_> = crate::resources_off_by_default().iter().map(version_of).collect();
        assert!(on_demand.is_subset(&listed(Off)), "{on_demand:?}");
        for resource in crate::resources_off_by_default() {
            let schema = pintle_schema::Schema::builtin().by_type_name(&resource.type_name);
            assert!(schema.is_some(), "{}", resource.type_name);
            let stored = crate::resources(&config).into_iter().chain(crate::resources_off_by_default());
            let mut stored = stored.filter(|other| other.conversion.is_none());
            let is_stored = stored.any(|other| other.storage.path == resource.storage.path);
            assert!(is_stored, "{}", resource.resource.resource);
        }
    }
}
