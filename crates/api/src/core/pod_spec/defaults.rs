//! Sets the defaults of a spec, for pods and templates alike.
//!
//! New defaults are set on pods only: a new default here would change stored templates, and so start a rollout of every
//! workload after an upgrade.

use super::{containers_of, image};
use crate::resource_list;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Value, ValueExt};

/// Sets the defaults that pods and templates share. Idempotent.
pub fn set_defaults(spec: &mut Value) {
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "restartPolicy", "Always");
    spec.set_default("securityContext", Value::Object(Default::default()));
    spec.set_default("terminationGracePeriodSeconds", 30);
    default_text(spec, "schedulerName", "default-scheduler");
    sync_service_account(spec);
    for volume in spec.items_at_mut("volumes") {
        set_volume_defaults(volume);
    }
    containers_of::for_each_mut(spec, |_, container| set_container_defaults(container));
    resource_list::round_up_at(spec, &["overhead", "resources.limits", "resources.requests"]);
}

/// Synchronizes `serviceAccount`, the older name of `serviceAccountName`, which takes precedence.
fn sync_service_account(spec: &mut Value) {
    if spec.str_at("serviceAccountName").is_empty() && !spec.str_at("serviceAccount").is_empty() {
        let name = spec.str_at("serviceAccount").to_owned();
        spec.set("serviceAccountName", name);
    }
    match spec.str_at("serviceAccountName").to_owned() {
        name if name.is_empty() => drop(spec.remove_at("serviceAccount")),
        name => spec.set("serviceAccount", name),
    }
}

fn set_container_defaults(container: &mut Value) {
    if container.str_at("imagePullPolicy").is_empty() {
        let policy = pull_policy(container.str_at("image"));
        container.set("imagePullPolicy", policy);
    }
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    for port in container.items_at_mut("ports") {
        default_text(port, "protocol", "TCP");
    }
    for variable in container.items_at_mut("env") {
        if let Some(reference) = variable.at_mut("valueFrom.fieldRef") {
            default_text(reference, "apiVersion", "v1");
        }
        if let Some(reference) = variable.at_mut("valueFrom.fileKeyRef") {
            reference.set_default("optional", false);
        }
    }
    resource_list::round_up_at(container, &["resources.limits", "resources.requests"]);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.at_mut(probe) {
            set_probe_defaults(probe);
        }
    }
    for action in ["lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet"] {
        if let Some(action) = container.at_mut(action) {
            set_http_get_defaults(action);
        }
    }
}

fn set_probe_defaults(probe: &mut Value) {
    for (field, default) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if probe.i64_at(field).unwrap_or_default() == 0 {
            probe.set(field, default);
        }
    }
    if let Some(action) = probe.at_mut("httpGet") {
        set_http_get_defaults(action);
    }
    if let Some(action) = probe.at_mut("grpc") {
        action.set_default("service", "");
    }
}

fn set_http_get_defaults(action: &mut Value) {
    default_text(action, "path", "/");
    default_text(action, "scheme", "HTTP");
}

/// The default mode of files in volumes, as permission bits.
const DEFAULT_FILE_MODE: i64 = 0o644;

/// The only field of a volume that is not a source.
const NOT_A_SOURCE: &str = "name";

fn set_volume_defaults(volume: &mut Value) {
    let has_source = volume
        .as_object()
        .is_some_and(|fields| fields.iter().any(|(name, value)| name != NOT_A_SOURCE && !value.is_null()));
    if !has_source {
        volume.set("emptyDir", Value::Object(Default::default()));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.at_mut(source) {
            source.set_default("defaultMode", DEFAULT_FILE_MODE);
        }
    }
    if enabled(Gate::ImageVolume)
        && let Some(image) = volume.at_mut("image")
        && image.str_at("pullPolicy").is_empty()
    {
        let policy = pull_policy(image.str_at("reference"));
        image.set("pullPolicy", policy);
    }
    set_source_defaults(volume);
    set_downward_api_defaults(volume.items_at_mut("downwardAPI.items"));
    for source in volume.items_at_mut("projected.sources") {
        set_downward_api_defaults(source.items_at_mut("downwardAPI.items"));
        if let Some(token) = source.at_mut("serviceAccountToken") {
            token.set_default("expirationSeconds", 3600);
        }
    }
    if let Some(template) = volume.at_mut("ephemeral.volumeClaimTemplate") {
        template.set_default("spec.volumeMode", "Filesystem");
        resource_list::round_up_at(template, &["spec.resources.limits", "spec.resources.requests"]);
    }
}

/// Sets the defaults of the sources that the volumes of pods and persistent volumes share.
pub(crate) fn set_source_defaults(volume: &mut Value) {
    if let Some(host_path) = volume.at_mut("hostPath") {
        host_path.set_default("type", "");
    }
    for (source, field, default) in [
        ("iscsi", "iscsiInterface", "default"),
        ("rbd", "pool", "rbd"),
        ("rbd", "user", "admin"),
        ("rbd", "keyring", "/etc/ceph/keyring"),
        ("scaleIO", "storageMode", "ThinProvisioned"),
        ("scaleIO", "fsType", "xfs"),
    ] {
        if let Some(source) = volume.at_mut(source) {
            default_text(source, field, default);
        }
    }
    if let Some(disk) = volume.at_mut("azureDisk") {
        // Behind pointers, empty texts are values.
        for (field, default) in [("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")] {
            disk.set_default(field, default);
        }
        disk.set_default("readOnly", false);
    }
}

fn set_downward_api_defaults(files: &mut [Value]) {
    for file in files {
        if let Some(reference) = file.at_mut("fieldRef") {
            default_text(reference, "apiVersion", "v1");
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn default_text(object: &mut Value, field: &str, default: &str) {
    if object.str_at(field).is_empty() {
        object.set(field, default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn claims_of_ephemeral_volumes_have_a_mode_also_without_a_spec() {
        let mut volume = json!({"ephemeral": {"volumeClaimTemplate": {}}});
        set_volume_defaults(&mut volume);
        let template = &volume["ephemeral"]["volumeClaimTemplate"];
        assert_eq!(*template, json!({"spec": {"volumeMode": "Filesystem"}}));
    }

    #[test]
    fn empty_texts_behind_pointers_are_kept() {
        let mut volume = json!({"azureDisk": {"diskName": "d", "kind": "", "fsType": ""}});
        set_source_defaults(&mut volume);
        let expected =
            json!({"diskName": "d", "kind": "", "fsType": "", "cachingMode": "ReadWrite", "readOnly": false});
        assert_eq!(volume["azureDisk"], expected);
        let mut volume = json!({"rbd": {"pool": ""}});
        set_source_defaults(&mut volume);
        assert_eq!(volume["rbd"]["pool"], "rbd");
    }
}
