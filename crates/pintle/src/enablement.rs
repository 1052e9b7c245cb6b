//! Applies `--runtime-config` to the resource declarations.

use crate::Options;
use pintle_api::enablement::{Enablement, VERSIONS, introduced, removed};
use pintle_apiserver::resource_config::{ResourceConfig, RuntimeConfig, RuntimeConfigError};
use pintle_controlplane::StorageVersions;
use pintle_feature_gates::{FeatureGates, Gate, MinorVersion};
use pintle_machinery::{GroupVersion, GroupVersionKind, GroupVersionResource, compare_versions};
use pintle_registry::Resource;
use std::collections::HashSet;

/// The enabled resources, and the disabled ones that store objects for them.
pub(crate) struct Enabled {
    /// The served resources.
    pub(crate) served: Vec<Resource>,
    /// Disabled resources that store the objects of another enabled version.
    pub(crate) internal: Vec<Resource>,
}

/// The error of a runtime configuration with malformed keys or unknown groups.
pub(crate) fn error(runtime_config: &RuntimeConfig) -> Option<RuntimeConfigError> {
    runtime_config.validate(|group| VERSIONS.iter().any(|(own, _, _)| *own == group)).err()
}

/// The enabled resources.
///
/// # Errors
/// When the configuration names unknown versions or has other values than booleans, in kube-apiserver's words.
pub(crate) fn resource_config(runtime_config: &RuntimeConfig) -> Result<ResourceConfig, RuntimeConfigError> {
    let registered: Vec<GroupVersion> =
        VERSIONS.iter().map(|(group, version, _)| GroupVersion::new(*group, *version)).collect();
    let with_default = VERSIONS.iter().filter(|(_, _, enablement)| *enablement != Enablement::Registered);
    let mut config = ResourceConfig::new(with_default.map(|(group, version, enablement)| {
        (GroupVersion::new(*group, *version), *enablement == Enablement::Default)
    }));
    config.merge(runtime_config, &registered)?;
    Ok(config)
}

/// Whether the server publishes its storage versions: the gate is open.
///
/// # Errors
/// When the API in which they are published is not served: no write would ever be accepted.
pub(crate) fn publishes_storage_versions(config: &ResourceConfig, is_open: bool) -> Result<bool, String> {
    let api = StorageVersions::resource();
    let resource = GroupVersionResource::new(api.group.clone(), "v1alpha1", api.resource.clone());
    if is_open && !config.resource_enabled(&resource) {
        return Err(format!(
            "the feature gate {} requires {api} to be served: --runtime-config={}/v1alpha1=true",
            Gate::StorageVersionAPI,
            api.group
        ));
    }
    Ok(is_open)
}

fn warn_of_closed_gate(storage: &str, gate: Gate) {
    tracing::warn!("{storage} storage is disabled because the {gate} feature gate is disabled");
}

/// Selects the enabled declarations. A resource with a closed gate, or newer than the emulated version, is not served.
///
/// # Errors
/// When `--runtime-config` names what is newer than the emulated version, in kube-apiserver's words.
pub(crate) fn enabled(
    mut declared: Vec<Resource>,
    config: &ResourceConfig,
    options: &Options,
    gates: &FeatureGates,
) -> Result<Enabled, String> {
    warn_of_alpha_versions(&declared, config, gates);
    store_compatibly(&mut declared, gates.versions().min_compatibility);
    let unavailable = unavailable(&declared, config, options, gates)?;
    let is_served = |resource: &Resource| {
        let is_enabled = config.resource_enabled(&resource.resource);
        match resource.gate {
            Some(gate) if is_enabled && !gates.enabled(gate) => {
                warn_of_closed_gate(&resource.kind, gate);
                false
            }
            _ => is_enabled && !unavailable.contains(&resource.resource),
        }
    };
    let (served, off): (Vec<_>, Vec<_>) = declared.into_iter().partition(is_served);
    let stores_for_another = |resource: &Resource| {
        resource.is_stored()
            && resource.conversion.is_none()
            && served.iter().any(|other| other.is_stored() && other.storage.path == resource.storage.path)
    };
    let internal = off.into_iter().filter(stores_for_another).collect();
    Ok(Enabled { served, internal })
}

/// Warns of enabled alpha versions while an older version is emulated: they may differ from those of that version.
fn warn_of_alpha_versions(declared: &[Resource], config: &ResourceConfig, gates: &FeatureGates) {
    let emulation = gates.versions().emulation;
    if emulation == MinorVersion::BINARY {
        return;
    }
    for (group, version, _) in VERSIONS.iter().filter(|(_, version, _)| version.contains("alpha")) {
        let is_enabled = |resource: &&Resource| {
            let id = &resource.resource;
            id.group == *group && id.version == *version && config.resource_enabled(id)
        };
        if declared.iter().any(|resource| is_enabled(&resource)) {
            let api = GroupVersion::new(*group, *version);
            tracing::warn!(
                "alpha api enabled with emulated version {emulation} instead of the binary's version {}, this is \
                 unsupported, proceed at your own risk: api={api}",
                MinorVersion::BINARY
            );
        }
    }
}

/// Stores resources in versions that the oldest servers of the control plane can read: in the first version that is not
/// newer than they are. A kind that is stored in another version than its own anyway stays there, and so does a kind that
/// those servers do not have. The versions in question have the same fields: the store changes `apiVersion` alone.
fn store_compatibly(declared: &mut [Resource], min_compatibility: MinorVersion) {
    let is_readable =
        |id: &GroupVersionResource| introduced(id).is_none_or(|since| since <= min_compatibility);
    let priority = |id: &GroupVersionResource| {
        VERSIONS.iter().position(|(group, version, _)| *group == id.group && *version == id.version)
    };
    let readable_version = |newer: &Resource| {
        let id = &newer.resource;
        let is_other = |other: &&GroupVersionResource| {
            other.group == id.group && other.resource == id.resource && is_readable(other)
        };
        let others = declared.iter().map(|resource| &resource.resource).filter(is_other);
        others.min_by_key(|other| priority(other)).map(|other| other.version.clone())
    };
    let is_stored_newer = |resource: &&Resource| {
        resource.is_stored()
            && resource.conversion.is_none()
            && resource.group_version_kind() == resource.storage.kind
            && !is_readable(&resource.resource)
    };
    let changed: Vec<(GroupVersionKind, String)> = declared
        .iter()
        .filter(is_stored_newer)
        .filter_map(|newer| Some((newer.storage.kind.clone(), readable_version(newer)?)))
        .collect();
    for (kind, version) in changed {
        for resource in declared.iter_mut().filter(|resource| resource.storage.kind == kind) {
            resource.storage.kind.version.clone_from(&version);
        }
    }
}

/// The enabled resources that are not served because the emulated version does not have them.
fn unavailable(
    declared: &[Resource],
    config: &ResourceConfig,
    options: &Options,
    gates: &FeatureGates,
) -> Result<HashSet<GroupVersionResource>, String> {
    let emulation = gates.versions().emulation;
    let (features, runtime_config) = (&options.features, &options.runtime_config);
    let mut enabled: Vec<&GroupVersionResource> =
        declared.iter().map(|resource| &resource.resource).filter(|it| config.resource_enabled(it)).collect();
    // The lower versions decide about the higher ones.
    enabled.sort_by(|one, other| compare_versions(&one.version, &other.version));
    let mut kept: HashSet<(&str, &str)> = HashSet::new();
    let mut unavailable = HashSet::new();
    for resource in enabled.iter().copied() {
        let version = GroupVersion::new(resource.group.clone(), resource.version.clone());
        let name = (resource.group.as_str(), resource.resource.as_str());
        let is_alpha = resource.version.contains("alpha");
        let names_it = runtime_config.names_resource(resource);
        if removed(resource).is_some_and(|at| at <= emulation) {
            unavailable.insert(resource.clone());
            continue;
        }
        let is_kept = match introduced(resource).filter(|since| *since > emulation) {
            None => true,
            Some(_) if features.emulation_forward_compatible && kept.contains(&name) => true,
            Some(_) if features.runtime_config_emulation_forward_compatible => {
                names_it || runtime_config.names_version(&version)
            }
            Some(since) if names_it => {
                return Err(format!(
                    "cannot enable resource {version}, Resource={} in runtime-config because it is introduced at {since} \
                     after the current version {emulation}. Consider setting \
                     --runtime-config-emulation-forward-compatible=true",
                    resource.resource
                ));
            }
            Some(_) => false,
        };
        match is_kept {
            true if !is_alpha => drop(kept.insert(name)),
            true => {}
            false => drop(unavailable.insert(resource.clone())),
        }
    }
    let has_version = |resource: &GroupVersionResource, version: &GroupVersion| {
        resource.group == version.group && resource.version == version.version
    };
    for resource in &unavailable {
        let version = GroupVersion::new(resource.group.clone(), resource.version.clone());
        let mut of_version = enabled.iter().filter(|other| has_version(other, &version));
        if of_version.all(|other| unavailable.contains(*other)) && runtime_config.names_version(&version) {
            return Err(format!(
                "cannot enable version {version} in runtime-config because all the resources have been introduced after the \
                 current version {emulation}. Consider setting --runtime-config-emulation-forward-compatible=true"
            ));
        }
    }
    Ok(unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn check(text: &str) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
        check_with(text, |_| {})
    }

    fn check_with(
        text: &str,
        change: impl FnOnce(&mut Options),
    ) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
        let mut options = Options::default();
        options.runtime_config.add(text);
        change(&mut options);
        let runtime_config = options.runtime_config.clone();
        if let Some(error) = error(&runtime_config) {
            return Err(error.to_string());
        }
        let gates = options.features.resolve()?;
        let config = resource_config(&runtime_config).map_err(|error| error.to_string())?;
        let mut declared = pintle_api::resources(&pintle_api::Config::default());
        declared.extend(pintle_api::resources_off_by_default());
        let Enabled { served, internal } = enabled(declared, &config, &options, &gates)?;
        let names = |resources: Vec<Resource>| {
            resources
                .iter()
                .map(|resource| {
                    format!("{}/{}", resource.resource.group_version(), resource.resource.resource)
                })
                .collect()
        };
        Ok((names(served), names(internal)))
    }

    #[test]
    fn the_defaults_are_what_is_declared_by_default() {
        let (served, internal) = check("").unwrap();
        assert_eq!(served.len(), pintle_api::resources(&pintle_api::Config::default()).len());
        assert!(internal.is_empty());
        let (all, _) = check("api/all=true").unwrap();
        let off_by_default = pintle_api::resources_off_by_default();
        let gated = off_by_default.iter().filter(|resource| resource.gate.is_some()).count();
        let removed = off_by_default.iter().filter(|resource| removed(&resource.resource).is_some()).count();
        assert_eq!(all.len(), served.len() + off_by_default.len() - gated - removed);
    }

    #[test]
    fn a_version_that_is_off_stores_for_the_one_that_is_on() {
        let (served, internal) = check("networking.k8s.io/v1=false,networking.k8s.io/v1beta1=true").unwrap();
        assert!(!served.contains("networking.k8s.io/v1/ipaddresses"));
        assert!(served.contains("networking.k8s.io/v1beta1/ipaddresses"));
        let expected = ["networking.k8s.io/v1/ipaddresses", "networking.k8s.io/v1/servicecidrs"];
        assert_eq!(internal, expected.map(str::to_owned).into());
        let (served, internal) = check("/v1/events=false,autoscaling/v2=false").unwrap();
        assert!(served.contains("events.k8s.io/v1/events") && !served.contains("v1/events"));
        let expected = ["autoscaling/v2/horizontalpodautoscalers", "v1/events"];
        assert_eq!(internal, expected.map(str::to_owned).into());
    }

    #[test]
    fn older_servers_of_the_control_plane_can_read_what_is_stored() {
        let rows = [
            // The least compatible version, a resource, the version in which it is stored.
            (36, "resource.k8s.io", "resourceclaims", "v1"),
            (34, "resource.k8s.io", "resourceclaims", "v1"),
            (33, "resource.k8s.io", "resourceclaims", "v1beta2"),
            (33, "resource.k8s.io", "resourceslices", "v1beta2"),
            (34, "storage.k8s.io", "volumeattributesclasses", "v1"),
            (33, "storage.k8s.io", "volumeattributesclasses", "v1beta1"),
            (33, "storage.k8s.io", "storageclasses", "v1"),
            // These are stored in older versions by declaration, or are unknown to those servers.
            (33, "admissionregistration.k8s.io", "mutatingadmissionpolicies", "v1beta1"),
            (33, "resource.k8s.io", "devicetaintrules", "v1alpha3"),
            (33, "storagemigration.k8s.io", "storageversionmigrations", "v1beta1"),
        ];
        for (minor, group, resource, expected) in rows {
            let mut declared = pintle_api::resources(&pintle_api::Config::default());
            declared.extend(pintle_api::resources_off_by_default());
            store_compatibly(&mut declared, MinorVersion::new(1, minor));
            let of_it = declared.iter().filter(|it| {
                it.resource.group == group && it.resource.resource == resource && it.is_stored()
            });
            let versions: BTreeSet<&str> = of_it.map(|it| it.storage.kind.version.as_str()).collect();
            assert_eq!(versions, [expected].into(), "1.{minor} {group}/{resource}");
        }
    }

    #[test]
    fn closed_gates_close_resources() {
        let open = |gates: &'static str| move |options: &mut Options| options.features.gates.add(gates);
        let (all, _) = check("api/all=true").unwrap();
        assert!(all.contains("resource.k8s.io/v1alpha3/devicetaintrules"));
        assert!(!all.contains("scheduling.k8s.io/v1alpha2/workloads"));
        let (opened, _) = check_with("api/all=true", open("GenericWorkload=true")).unwrap();
        assert!(opened.contains("scheduling.k8s.io/v1alpha2/workloads"));
        let (opened, _) = check_with("", open("GenericWorkload=true")).unwrap();
        assert!(!opened.contains("scheduling.k8s.io/v1alpha2/workloads"));
        assert_eq!(check("nope/v1=true").unwrap_err(), "unknown api groups nope/v1");
    }

    #[test]
    fn an_emulated_version_has_no_newer_resources() {
        let emulate = |minor: &'static str, forward: bool, by_config: bool| {
            move |options: &mut Options| {
                options.features.versions.emulated.push(minor.to_owned());
                options.features.emulation_forward_compatible = forward;
                options.features.runtime_config_emulation_forward_compatible = by_config;
            }
        };
        let (served, internal) = check_with("", emulate("1.33", false, false)).unwrap();
        assert!(!served.contains("resource.k8s.io/v1/resourceclaims"));
        assert!(!served.contains("admissionregistration.k8s.io/v1/mutatingadmissionpolicies"));
        assert!(served.contains("admissionregistration.k8s.io/v1/validatingadmissionpolicies"));
        assert!(internal.is_empty(), "nothing is stored for a version that is served: {internal:?}");
        let (served, _) = check_with("", emulate("1.34", false, false)).unwrap();
        assert!(served.contains("resource.k8s.io/v1/resourceclaims"));
        let beta = "resource.k8s.io/v1beta1=true";
        let (served, internal) = check_with(beta, emulate("1.33", false, false)).unwrap();
        assert!(served.contains("resource.k8s.io/v1beta1/resourceclaims"));
        assert!(!served.contains("resource.k8s.io/v1/resourceclaims"));
        assert!(internal.iter().any(|name| name.ends_with("/resourceclaims")), "{internal:?}");
        let policies = "admissionregistration.k8s.io/v1beta1/validatingadmissionpolicies";
        for (version, is_there) in [("1.33", true), ("1.34", false), ("1.36", false)] {
            let (served, _) = check_with("api/all=true", emulate(version, false, false)).unwrap();
            assert_eq!(served.contains(policies), is_there, "{version}");
        }
        let (served, _) = check_with(beta, emulate("1.33", true, false)).unwrap();
        assert!(served.contains("resource.k8s.io/v1/resourceclaims"));
        let (served, _) = check_with("resource.k8s.io/v1=true", emulate("1.33", false, true)).unwrap();
        assert!(served.contains("resource.k8s.io/v1/resourceclaims"));
        assert_eq!(
            check_with("resource.k8s.io/v1=true", emulate("1.33", false, false)).unwrap_err(),
            "cannot enable version resource.k8s.io/v1 in runtime-config because all the resources have been introduced \
             after the current version 1.33. Consider setting --runtime-config-emulation-forward-compatible=true"
        );
        assert_eq!(
            check_with("resource.k8s.io/v1/resourceclaims=true", emulate("1.33", false, false)).unwrap_err(),
            "cannot enable resource resource.k8s.io/v1, Resource=resourceclaims in runtime-config because it is introduced \
             at 1.34 after the current version 1.33. Consider setting --runtime-config-emulation-forward-compatible=true"
        );
    }
}
