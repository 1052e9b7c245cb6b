//! Validates the volume mounts and volume devices of containers.

use super::paths;
use crate::field_checks::supported;
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::{HashMap, HashSet};

/// The pod's volumes by name.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// Validates a container's `volumeMounts`.
pub(super) fn validate_mounts(container: &Value, volumes: &Volumes<'_>, path: &FieldPath) -> ErrorList {
    let devices = by_name(container.items_at("volumeDevices"), "devicePath");
    let mut errors = ErrorList::new();
    let device_paths: HashSet<&str> = devices.values().copied().collect();
    let mut mount_paths = HashSet::new();
    for (index, mount) in container.items_at("volumeMounts").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let item_path = path.index(index);
        let (name, mount_path) = (mount.str_at("name"), mount.str_at("mountPath"));
        let (name_path, mount_path_path) = (item_path.child("name"), item_path.child("mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&name_path, name));
        }
        if mount_path.is_empty() {
            errors.push(FieldError::required(&mount_path_path, ""));
        }
        if !mount_paths.insert(mount_path) {
            errors.push(FieldError::invalid(&mount_path_path, mount_path, "must be unique"));
        }
        if devices.contains_key(name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&name_path, name, detail));
        }
        if device_paths.contains(mount_path) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&mount_path_path, mount_path, detail));
        }
        errors.extend(validate_sub_paths(mount, path, &item_path));
        if mount.at("mountPropagation").is_some() {
            errors.extend(validate_propagation(mount, container, &path.child("mountPropagation")));
        }
        errors.extend(validate_recursive_read_only(mount, &path.child("recursiveReadOnly")));
    }
    errors
}

/// Validates the paths within a volume. As in the reference, their errors have the path of the list.
fn validate_sub_paths(mount: &Value, list_path: &FieldPath, item_path: &FieldPath) -> ErrorList {
    let (sub_path, expression) = (mount.str_at("subPath"), mount.str_at("subPathExpr"));
    let mut errors = ErrorList::new();
    if !sub_path.is_empty() {
        errors.extend(paths::validate_local_descending(sub_path, &list_path.child("subPath")));
    }
    if !expression.is_empty() {
        if !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&item_path.child("subPathExpr"), expression, detail));
        }
        errors.extend(paths::validate_local_descending(expression, &list_path.child("subPathExpr")));
    }
    errors
}

fn validate_propagation(mount: &Value, container: &Value, path: &FieldPath) -> ErrorList {
    let propagation = mount.str_at("mountPropagation");
    let mut errors = supported(propagation, &["Bidirectional", "HostToContainer", "None"], path);
    if propagation == "Bidirectional" && !container.bool_at("securityContext.privileged") {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn validate_recursive_read_only(mount: &Value, path: &FieldPath) -> ErrorList {
    if mount.at("recursiveReadOnly").is_none() {
        return ErrorList::new();
    }
    let mut errors = ErrorList::new();
    match mount.str_at("recursiveReadOnly") {
        "Enabled" | "IfPossible" => {
            if !mount.bool_at("readOnly") {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if !matches!(mount.at("mountPropagation").and_then(Value::as_str), None | Some("None")) {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        mode => errors.extend(supported(mode, &["Disabled", "Enabled", "IfPossible"], path)),
    }
    errors
}

/// Validates a container's `volumeDevices`.
pub(super) fn validate_devices(container: &Value, volumes: &Volumes<'_>, path: &FieldPath) -> ErrorList {
    let mounts = by_name(container.items_at("volumeMounts"), "mountPath");
    let mount_paths: HashSet<&str> = mounts.values().copied().collect();
    let mut errors = ErrorList::new();
    let (mut names, mut device_paths) = (HashSet::new(), HashSet::new());
    for (index, device) in container.items_at("volumeDevices").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let (name, device_path) = (device.str_at("name"), device.str_at("devicePath"));
        let (name_path, device_path_path) = (path.child("name"), path.child("devicePath"));
        let volume = volumes.get(name);
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        }
        if names.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volume {
            Some(volume)
                if volume.at("persistentVolumeClaim").is_none() && volume.at("ephemeral").is_none() =>
            {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_path, name, detail));
            }
            Some(_) => {}
            None => errors.push(FieldError::not_found(&name_path, name)),
        }
        if device_path.is_empty() {
            errors.push(FieldError::required(&device_path_path, ""));
        }
        if device_paths.contains(device_path) {
            errors.push(FieldError::invalid(&device_path_path, device_path, "must be unique"));
        }
        if !device_path.is_empty() && !paths::validate_no_backsteps(device_path, &path).is_empty() {
            let detail = "can not contain backsteps ('..')";
            errors.push(FieldError::invalid(&device_path_path, device_path, detail));
        } else {
            device_paths.insert(device_path);
        }
        if mounts.contains_key(name) {
            let detail = "must not already exist in volumeMounts";
            errors.push(FieldError::invalid(&name_path, name, detail));
        }
        if mount_paths.contains(device_path) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&device_path_path, device_path, detail));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
    errors
}

fn by_name<'a>(items: &'a [Value], path_field: &str) -> HashMap<&'a str, &'a str> {
    items.iter().map(|item| (item.str_at("name"), item.str_at(path_field))).collect()
}
