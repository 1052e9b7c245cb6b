//! Validates the source of a volume's data. Most sources are those of a pod's volumes; some name secrets in any
//! namespace.

use crate::core::pod_spec::{paths, volume_sources};
use crate::field_checks::{invalid_each, required};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Value, ValueExt,
    validation::{is_dns1123_label, is_dns1123_subdomain},
};

/// The sources in the order of validation.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// The sources that support mount options in an annotation.
const MOUNTED_WITH_OPTIONS: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

/// The sources of a volume, without its other fields.
pub(super) fn of(volume: &Value) -> Value {
    let members = SOURCES.into_iter();
    let members = members.filter_map(|name| Some((name.to_owned(), volume.at("spec")?.at(name)?.clone())));
    Value::Object(members.collect::<Map>())
}

pub(super) fn has_mount_options(volume: &Value) -> bool {
    let spec = volume.map_at("spec");
    MOUNTED_WITH_OPTIONS.iter().any(|source| spec.get(source).is_some_and(|source| !source.is_null()))
}

/// Warnings about removed sources.
pub(super) fn warnings(volume: &Value) -> Vec<String> {
    const DEPRECATED: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let spec = volume.at("spec").unwrap_or(&Value::Null);
    let used = DEPRECATED.into_iter().filter(|(field, ..)| spec.at(field).is_some());
    used.map(|(_, shown, message)| format!("spec.{shown}: {message}")).collect()
}

/// Validates the sources of a spec, of which exactly one is required.
pub(super) fn validate(spec: &Value, name: &str, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    for field in SOURCES {
        let Some(source) = spec.at(field) else { continue };
        // As in the reference, a second flexible volume is accepted.
        if found && field != "flexVolume" {
            let shown = if field == "cephfs" { "cephFS" } else { field };
            errors.push(FieldError::forbidden(&path.child(shown), "may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        // As in the reference, errors of this source name another field.
        let shown = if field == "gcePersistentDisk" { "persistentDisk" } else { field };
        errors.extend(validate_one(field, source, name, &path.child(shown)));
        if field == "local" && spec.at("nodeAffinity").is_none() {
            let detail = "Local volume requires node affinity";
            errors.push(FieldError::required(&path.child("nodeAffinity"), detail));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

fn validate_one(field: &str, source: &Value, name: &str, path: &FieldPath) -> ErrorList {
    let common = || volume_sources::validate(field, source, path);
    match field {
        "local" => {
            let mut errors = required(source, "path", path);
            if errors.is_empty() {
                errors.extend(paths::validate_no_backsteps(source.str_at("path"), &path.child("path")));
            }
            errors
        }
        "csi" => validate_csi(source, path),
        "iscsi" => volume_sources::validate_iscsi(source, path, Some(name)),
        "glusterfs" => {
            let mut errors = common();
            errors.extend(validate_endpoints_namespace(source, &path.child("endpointsNamespace")));
            errors
        }
        "cinder" | "storageos" => {
            let mut errors = common();
            if source.at("secretRef").is_some() {
                errors.extend(required(source, "secretRef.namespace", path));
            }
            errors
        }
        "azureFile" => {
            let mut errors = common();
            if source.at("secretNamespace").is_some() {
                errors.extend(required(source, "secretNamespace", path));
            }
            errors
        }
        _ => common(),
    }
}

fn validate_endpoints_namespace(source: &Value, path: &FieldPath) -> ErrorList {
    match source.at("endpointsNamespace").and_then(Value::as_str) {
        None => ErrorList::new(),
        Some("") => {
            let detail = "if the endpointnamespace is set, it must be a valid namespace name";
            vec![FieldError::invalid(path, "", detail)]
        }
        Some(namespace) => invalid_each(path, namespace, is_dns1123_label(namespace)),
    }
}

fn validate_csi(source: &Value, path: &FieldPath) -> ErrorList {
    const SECRETS: [&str; 4] = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    let mut errors = volume_sources::validate_csi_driver_name(source.str_at("driver"), &path.child("driver"));
    errors.extend(required(source, "volumeHandle", path));
    for field in SECRETS {
        if let Some(secret) = source.at(field) {
            errors.extend(validate_secret(secret, &path.child(field)));
        }
    }
    errors
}

fn validate_secret(secret: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = required(secret, "name", path);
    let name = secret.str_at("name");
    if !name.is_empty() {
        errors.extend(invalid_each(&path.child("name"), name, is_dns1123_subdomain(name)));
    }
    errors.extend(required(secret, "namespace", path));
    let namespace = secret.str_at("namespace");
    if !namespace.is_empty() {
        errors.extend(invalid_each(&path.child("namespace"), namespace, is_dns1123_label(namespace)));
    }
    errors
}
