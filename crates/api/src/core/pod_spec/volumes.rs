//! Validates a pod's volumes (<https://kubernetes.io/docs/concepts/storage/volumes/>): their names and sources.

use super::mounts::Volumes;
use super::{PodValidationOptions, claim_template, containers, projected, volume_sources};
use crate::field_checks::invalid_each;
use crate::resource_list::quantity;
use pintle_go_forms::quote;
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{is_dns1123_label, is_dns1123_subdomain};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

/// Validates `volumes` and returns the valid ones. `pod_name` is empty for a template.
pub(super) fn validate<'a>(
    volumes: &'a [Value],
    pod_name: &str,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> (Volumes<'a>, ErrorList) {
    let created_claims: HashSet<String> = volumes
        .iter()
        .filter(|volume| !pod_name.is_empty() && volume.at("ephemeral").is_some())
        .map(|volume| format!("{pod_name}-{}", volume.str_at("name")))
        .collect();
    let mut valid = Volumes::new();
    let mut errors = ErrorList::new();
    for (index, volume) in volumes.iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (name, name_path) = (volume.str_at("name"), path.child("name"));
        let mut own = validate_source(volume, pod_name, options, &path);
        if name.is_empty() {
            own.push(FieldError::required(&name_path, ""));
        } else {
            own.extend(invalid_each(&name_path, name, is_dns1123_label(name)));
        }
        if valid.contains_key(name) {
            own.push(FieldError::duplicate(&name_path, name));
        }
        if own.is_empty() {
            valid.insert(name, volume);
        }
        errors.extend(own);
        let claim = volume.str_at("persistentVolumeClaim.claimName");
        if volume.at("persistentVolumeClaim").is_some() && created_claims.contains(claim) {
            let path = path.child("persistentVolumeClaim").child("claimName");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&path, claim, detail));
        }
    }
    (valid, errors)
}

/// The paths of all projected service account tokens of a spec.
pub(super) fn token_paths(spec: &Value) -> impl Iterator<Item = &str> {
    spec.items_at("volumes")
        .iter()
        .flat_map(|volume| volume.items_at("projected.sources"))
        .filter_map(|source| source.at("serviceAccountToken"))
        .map(|token| token.str_at("path"))
}

/// The sources in the order of validation, with the field name in the errors about a second source.
const SOURCES: [(&str, &str); 29] = [
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

fn validate_source(
    volume: &Value,
    pod_name: &str,
    options: &PodValidationOptions,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    if let Some(source) = volume.at("emptyDir") {
        found = true;
        if source.at("sizeLimit").is_some_and(|limit| quantity(limit).sign() < 0) {
            let detail = "SizeLimit field must be a valid resource quantity";
            errors.push(FieldError::forbidden(&path.child("emptyDir").child("sizeLimit"), detail));
        }
    }
    for (field, shown) in SOURCES {
        let Some(source) = volume.at(field) else { continue };
        if found {
            errors.push(FieldError::forbidden(&path.child(shown), "may not specify more than 1 volume type"));
        } else {
            found = true;
            errors.extend(validate_one(field, source, options, path));
            if field == "ephemeral" {
                errors.extend(validate_claim_name(volume.str_at("name"), pod_name, path));
            }
        }
        if field == "iscsi" {
            errors.extend(volume_sources::validate_initiator_length(volume, path));
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

fn validate_one(field: &str, source: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    // As in the reference, errors of this source name another field.
    let path = path.child(if field == "gcePersistentDisk" { "persistentDisk" } else { field });
    match field {
        "downwardAPI" => projected::validate_downward_api(source, &path),
        "projected" => projected::validate(source, options, &path),
        "ephemeral" => match source.at("volumeClaimTemplate") {
            Some(template) => claim_template::validate(template, &path.child("volumeClaimTemplate")),
            None => vec![FieldError::required(&path.child("volumeClaimTemplate"), "")],
        },
        "image" => {
            let mut errors = ErrorList::new();
            if options.resource_is_pod && source.str_at("reference").is_empty() {
                errors.push(FieldError::required(&path.child("reference"), ""));
            }
            let policy = source.str_at("pullPolicy");
            errors.extend(containers::validate_pull_policy(policy, &path.child("pullPolicy")));
            errors
        }
        _ => volume_sources::validate(field, source, &path),
    }
}

/// Validates the name of the claim of an ephemeral volume, which joins the names of pod and volume.
fn validate_claim_name(volume_name: &str, pod_name: &str, path: &FieldPath) -> ErrorList {
    if volume_name.is_empty() || pod_name.is_empty() {
        return ErrorList::new();
    }
    let claim = format!("{pod_name}-{volume_name}");
    is_dns1123_subdomain(&claim)
        .into_iter()
        .map(|message| {
            let detail = format!("PVC name {}: {message}", quote(&claim));
            FieldError::invalid(&path.child("name"), volume_name, detail)
        })
        .collect()
}
