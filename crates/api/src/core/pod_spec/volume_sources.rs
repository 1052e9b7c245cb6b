//! Validates the volume sources that have few rules.

use super::paths;
use crate::field_checks::{invalid_each, required, supported};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::validation::{
    inclusive_range_error, is_dns1123_label, is_dns1123_subdomain, name_is_dns_subdomain,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use regex::Regex;
use std::sync::LazyLock;

const INVALID_FORMAT: &str = "must be valid format";
const INITIATOR_TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                                  iscsi.initiatorName is specified.";
pub(super) const FILE_MODE_ERROR: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Validates the source in `field`.
pub(crate) fn validate(field: &str, source: &Value, path: &FieldPath) -> ErrorList {
    match field {
        "hostPath" => validate_host_path(source, path),
        "gitRepo" => {
            let mut errors = required(source, "repository", path);
            let directory = source.str_at("directory");
            errors.extend(paths::validate_local_descending(directory, &path.child("directory")));
            errors
        }
        "gcePersistentDisk" => validate_disk(source, "pdName", path),
        "awsElasticBlockStore" => validate_disk(source, "volumeID", path),
        "secret" => validate_files(source, "secretName", path),
        "configMap" => validate_files(source, "name", path),
        "nfs" => {
            let mut errors = all_required(source, &["server", "path"], path);
            let value = source.str_at("path");
            if !value.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), value, "must be an absolute path"));
            }
            errors
        }
        "iscsi" => validate_iscsi(source, path, None),
        "glusterfs" => all_required(source, &["endpoints", "path"], path),
        "flocker" => validate_flocker(source, path),
        "persistentVolumeClaim" => required(source, "claimName", path),
        "rbd" => {
            let mut errors = required_list(source, "monitors", path);
            errors.extend(required(source, "image", path));
            errors
        }
        "cinder" => {
            let mut errors = required(source, "volumeID", path);
            errors.extend(validate_secret_reference(source, path));
            errors
        }
        "cephfs" => required_list(source, "monitors", path),
        "quobyte" => validate_quobyte(source, path),
        "fc" => validate_fibre_channel(source, path),
        "flexVolume" => validate_flex(source, path),
        "azureFile" => all_required(source, &["secretName", "shareName"], path),
        "vsphereVolume" => required(source, "volumePath", path),
        "photonPersistentDisk" => required(source, "pdID", path),
        "portworxVolume" => required(source, "volumeID", path),
        "azureDisk" => validate_azure_disk(source, path),
        "storageos" => validate_storage_os(source, path),
        "scaleIO" => all_required(source, &["gateway", "system", "volumeName"], path),
        "csi" => validate_csi(source, path),
        _ => ErrorList::new(),
    }
}

fn all_required(source: &Value, fields: &[&str], path: &FieldPath) -> ErrorList {
    fields.iter().flat_map(|field| required(source, field, path)).collect()
}

fn required_list(source: &Value, field: &str, path: &FieldPath) -> ErrorList {
    if source.items_at(field).is_empty() {
        return vec![FieldError::required(&path.child(field), "")];
    }
    ErrorList::new()
}

fn validate_secret_reference(source: &Value, path: &FieldPath) -> ErrorList {
    if source.at("secretRef").is_some() { required(source, "secretRef.name", path) } else { ErrorList::new() }
}

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

fn validate_host_path(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = required(source, "path", path);
    if errors.is_empty() {
        errors.extend(paths::validate_no_backsteps(source.str_at("path"), &path.child("path")));
        errors.extend(supported(source.str_at("type"), &HOST_PATH_TYPES, &path.child("type")));
    }
    errors
}

fn validate_disk(source: &Value, name_field: &str, path: &FieldPath) -> ErrorList {
    let mut errors = required(source, name_field, path);
    let partition = source.i64_at("partition").unwrap_or_default();
    if !(0..=255).contains(&partition) {
        let path = path.child("partition");
        errors.push(FieldError::invalid(&path, partition, inclusive_range_error(1, 255)));
    }
    errors
}

/// Validates a source that projects the keys of an object as files.
fn validate_files(source: &Value, name_field: &str, path: &FieldPath) -> ErrorList {
    let mut errors = required(source, name_field, path);
    errors.extend(validate_mode(source, "defaultMode", path));
    for (index, item) in source.items_at("items").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        errors.extend(validate_key_to_path(item, &path.child("items").index(index)));
    }
    errors
}

/// Validates an item that maps a key to a file's path.
pub(super) fn validate_key_to_path(item: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = all_required(item, &["key", "path"], path);
    errors.extend(paths::validate_local_non_reserved(item.str_at("path"), &path.child("path")));
    errors.extend(validate_mode(item, "mode", path));
    errors
}

/// Validates the permission bits of files.
pub(super) fn validate_mode(source: &Value, field: &str, path: &FieldPath) -> Option<FieldError> {
    let mode = source.i64_at(field).filter(|mode| !(0..=0o777).contains(mode))?;
    Some(FieldError::invalid(&path.child(field), mode, FILE_MODE_ERROR))
}

/// Validates an iSCSI source. That of a persistent volume, which is given by its name, also limits the length of a
/// custom initiator, which is registered under the names of volume and portal together.
pub(crate) fn validate_iscsi(source: &Value, path: &FieldPath, volume: Option<&str>) -> ErrorList {
    let mut errors = required(source, "targetPortal", path);
    if let Some(volume) = volume
        && initiator_is_too_long(source, volume)
    {
        let portal = source.str_at("targetPortal");
        errors.push(FieldError::invalid(&path.child("targetportal"), portal, INITIATOR_TOO_LONG));
    }
    let unknown_format = match volume {
        None => "must be valid format starting with iqn, eui, or naa",
        Some(_) => INVALID_FORMAT,
    };
    match source.str_at("iqn") {
        "" => errors.push(FieldError::required(&path.child("iqn"), "")),
        name => errors.extend(validate_qualified_name(name, unknown_format, &path.child("iqn"))),
    }
    let lun = source.i64_at("lun").unwrap_or_default();
    if !(0..=255).contains(&lun) {
        errors.push(FieldError::invalid(&path.child("lun"), lun, inclusive_range_error(0, 255)));
    }
    let authenticates = source.bool_at("chapAuthDiscovery") || source.bool_at("chapAuthSession");
    if authenticates && source.at("secretRef").is_none() {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if volume.is_some() && source.at("secretRef").is_some() {
        errors.extend(required(source, "secretRef.name", path));
    }
    if let Some(name) = source.at("initiatorName").and_then(Value::as_str) {
        errors.extend(validate_qualified_name(name, unknown_format, &path.child("initiatorname")));
    }
    errors
}

/// Validates an iSCSI name in one of its three formats: `iqn`, `eui` or `naa`.
fn validate_qualified_name(name: &str, unknown_format: &str, path: &FieldPath) -> Option<FieldError> {
    static IQN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"iqn\.[0-9]{4}-[0-9]{2}\.([[:alnum:].-]+)(:[^,;*&$|\s]+)$").ok());
    let is_hex_like = |prefix: &str, length: usize| {
        // As in the reference, any character may separate prefix and number.
        name.strip_prefix(prefix).is_some_and(|rest| {
            let mut characters = rest.chars();
            characters.next().is_some_and(|separator| separator != '\n')
                && characters.as_str().len() == length
                && characters.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let is_valid = if name.starts_with("iqn") {
        IQN.as_ref().is_some_and(|pattern| pattern.is_match(name))
    } else if name.starts_with("eui") {
        is_hex_like("eui", 16)
    } else if name.starts_with("naa") {
        is_hex_like("naa", 32)
    } else {
        return Some(FieldError::invalid(path, name, unknown_format));
    };
    (!is_valid).then(|| FieldError::invalid(path, name, INVALID_FORMAT))
}

/// Whether a custom initiator's name, which consists of those of volume and portal, is too long.
fn initiator_is_too_long(source: &Value, volume: &str) -> bool {
    source.at("initiatorName").is_some() && volume.len() + 1 + source.str_at("targetPortal").len() > 64
}

/// Validates the length of an iSCSI volume's name, which a custom initiator is registered under.
pub(super) fn validate_initiator_length(volume: &Value, path: &FieldPath) -> Option<FieldError> {
    let name = volume.str_at("name");
    let is_too_long = volume.at("iscsi").is_some_and(|source| initiator_is_too_long(source, name));
    is_too_long.then(|| FieldError::invalid(&path.child("name"), name, INITIATOR_TOO_LONG))
}

fn validate_flocker(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, uuid) = (source.str_at("datasetName"), source.str_at("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => {
            errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
        }
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
        _ => {}
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
    errors
}

fn validate_quobyte(source: &Value, path: &FieldPath) -> ErrorList {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.str_at("registry");
    let mut errors = ErrorList::new();
    if registry.is_empty() {
        errors.push(FieldError::required(&path.child("registry"), PAIRS));
    } else if source.str_at("tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_port(pair)) {
            errors.push(FieldError::invalid(&path.child("registry"), registry, PAIRS));
        }
    }
    errors.extend(required(source, "volume", path));
    errors
}

/// Whether a text has the form `host:port`, with brackets around a host that contains colons.
fn is_host_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(address) => return !address.contains(['[', ']']) && !port.contains(['[', ']']),
            None => return false,
        },
        None => host,
    };
    !host.contains([':', '[', ']']) && !port.contains(['[', ']'])
}

fn validate_fibre_channel(source: &Value, path: &FieldPath) -> ErrorList {
    let (names, ids) = (source.items_at("targetWWNs"), source.items_at("wwids"));
    let names_path = path.child("targetWWNs");
    let mut errors = ErrorList::new();
    if names.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(&names_path, detail));
    }
    if !names.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&names_path, names.to_vec(), detail));
    }
    if !names.is_empty() {
        let path = path.child("lun");
        match source.i64_at("lun") {
            None => errors.push(FieldError::required(&path, "lun is required if targetWWNs is specified")),
            Some(lun) if !(0..=255).contains(&lun) => {
                errors.push(FieldError::invalid(&path, lun, inclusive_range_error(0, 255)));
            }
            Some(_) => {}
        }
    }
    errors
}

fn validate_flex(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = required(source, "driver", path);
    for key in source.map_at("options").keys() {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let normalized = format!(".{}", namespace.to_lowercase());
        if normalized.ends_with(".kubernetes.io") || normalized.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&path.child("options").key(key), key.as_str(), detail));
        }
    }
    errors
}

fn validate_azure_disk(source: &Value, path: &FieldPath) -> ErrorList {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let mut errors = all_required(source, &["diskName", "diskURI"], path);
    let uri = source.str_at("diskURI");
    if source.at("cachingMode").is_some() {
        let modes = ["None", "ReadOnly", "ReadWrite"];
        errors.extend(supported(source.str_at("cachingMode"), &modes, &path.child("cachingMode")));
    }
    if source.at("kind").is_some() {
        let kind = source.str_at("kind");
        errors.extend(supported(kind, &["Dedicated", "Managed", "Shared"], &path.child("kind")));
        let (prefix, example) =
            if kind == "Managed" { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
        if !uri.starts_with(prefix) {
            errors.push(FieldError::not_supported(&path.child("diskURI"), uri, &[example]).of_plain_text());
        }
    }
    errors
}

fn validate_storage_os(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = required(source, "volumeName", path);
    for field in ["volumeName", "volumeNamespace"] {
        let name = source.str_at(field);
        if !name.is_empty() {
            errors.extend(invalid_each(&path.child(field), name, is_dns1123_label(name)));
        }
    }
    errors.extend(validate_secret_reference(source, path));
    errors
}

fn validate_csi(source: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_csi_driver_name(source.str_at("driver"), &path.child("driver"));
    if source.at("nodePublishSecretRef").is_some() {
        match source.str_at("nodePublishSecretRef.name") {
            "" => errors.extend(required(source, "nodePublishSecretRef.name", path)),
            name => {
                let messages = name_is_dns_subdomain(name, false);
                errors.extend(invalid_each(&path.child("name"), name, messages));
            }
        }
    }
    errors
}

/// Validates the name of a CSI driver.
pub(crate) fn validate_csi_driver_name(name: &str, path: &FieldPath) -> ErrorList {
    const MAX_LENGTH: usize = 63;
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if name.len() > MAX_LENGTH {
        errors.push(FieldError::too_long(path, MAX_LENGTH));
    }
    errors.extend(invalid_each(path, name, is_dns1123_subdomain(&pintle_go_forms::to_lower(name))));
    errors
}
