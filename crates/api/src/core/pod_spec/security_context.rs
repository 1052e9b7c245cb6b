//! Validates the security contexts of pods and containers
//! (<https://kubernetes.io/docs/tasks/configure-pod-container/security-context/>).

use super::{PodValidationOptions, paths, privileged, windows};
use crate::field_checks::supported;
use pintle_machinery::validation::{is_valid_group_id, is_valid_user_id};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use std::collections::HashSet;

/// Validates a container's `securityContext`.
pub(super) fn validate_container(container: &Value, spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(context) = container.at("securityContext") else { return ErrorList::new() };
    let path = path.child("securityContext");
    let mut errors = validate_privileged(context, privileged::is_allowed(), &path);
    errors.extend(validate_user_and_group(context, &path));
    if context.at("procMount").is_some() {
        let mount = context.str_at("procMount");
        let path = path.child("procMount");
        errors.extend(supported(mount, &["Default", "Unmasked"], &path));
        let shares_users = spec.at("hostUsers").and_then(Value::as_bool) != Some(false);
        if shares_users && mount == "Unmasked" {
            errors.push(FieldError::invalid(&path, mount, "`hostUsers` must be false to use `Unmasked`"));
        }
    }
    errors.extend(validate_seccomp_profile(context, &path.child("seccompProfile")));
    if context.at("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false) {
        if context.bool_at("privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            let error = FieldError::invalid(&path, context.clone(), detail);
            errors.push(pintle_internal_form::show(error, "*core.SecurityContext"));
        }
        for capability in context.items_at("capabilities.add") {
            if capability.as_str() == Some("CAP_SYS_ADMIN") {
                let detail =
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
                let error = FieldError::invalid(&path, context.clone(), detail);
                errors.push(pintle_internal_form::show(error, "*core.SecurityContext"));
            }
        }
    }
    errors.extend(windows::validate_options(context, &path.child("windowsOptions")));
    if let Some(profile) = context.at("appArmorProfile") {
        errors.extend(validate_app_armor_profile(profile, &path.child("appArmorProfile")));
    }
    errors
}

fn validate_privileged(context: &Value, is_allowed: bool, path: &FieldPath) -> ErrorList {
    let is_refused = context.bool_at("privileged") && !is_allowed;
    let error = || FieldError::forbidden(&path.child("privileged"), "disallowed by cluster policy");
    is_refused.then(error).into_iter().collect()
}

/// Validates the pod's `securityContext`.
pub(super) fn validate_pod(spec: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let Some(context) = spec.at("securityContext") else { return ErrorList::new() };
    let path = path.child("securityContext");
    let mut errors = ErrorList::new();
    if let Some(id) = context.i64_at("fsGroup") {
        errors.extend(invalid_id(id, is_valid_group_id(id), &path.child("fsGroup")));
    }
    errors.extend(validate_user_and_group(context, &path));
    for (index, group) in context.items_at("supplementalGroups").iter().enumerate() {
        let id = group.as_i64().unwrap_or_default();
        let path = path.child("supplementalGroups").index(index);
        errors.extend(invalid_id(id, is_valid_group_id(id), &path));
    }
    if spec.bool_at("shareProcessNamespace") && spec.bool_at("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, detail));
    }
    errors.extend(validate_sysctls(spec, options, &path.child("sysctls")));
    let texts: [(&str, &[&str]); 1] = [("fsGroupChangePolicy", &["Always", "OnRootMismatch"])];
    errors.extend(validate_texts(context, &texts, &path));
    errors.extend(validate_seccomp_profile(context, &path.child("seccompProfile")));
    errors.extend(windows::validate_options(context, &path.child("windowsOptions")));
    if let Some(profile) = context.at("appArmorProfile") {
        errors.extend(validate_app_armor_profile(profile, &path.child("appArmorProfile")));
    }
    let selinux: &[&str] =
        if options.allow_any_selinux_change_policy { &["MountOption", "Recursive"] } else { &["Recursive"] };
    let texts: [(&str, &[&str]); 2] =
        [("supplementalGroupsPolicy", &["Merge", "Strict"]), ("seLinuxChangePolicy", selinux)];
    errors.extend(validate_texts(context, &texts, &path));
    errors
}

/// Validates fields that, when set, must have one of the given values.
fn validate_texts(context: &Value, fields: &[(&str, &[&str])], path: &FieldPath) -> ErrorList {
    let given = fields.iter().filter(|(field, _)| context.at(field).is_some());
    given.flat_map(|(field, values)| supported(context.str_at(field), values, &path.child(field))).collect()
}

fn validate_user_and_group(context: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(id) = context.i64_at("runAsUser") {
        errors.extend(invalid_id(id, is_valid_user_id(id), &path.child("runAsUser")));
    }
    if let Some(id) = context.i64_at("runAsGroup") {
        errors.extend(invalid_id(id, is_valid_group_id(id), &path.child("runAsGroup")));
    }
    errors
}

fn invalid_id(id: i64, messages: Vec<String>, path: &FieldPath) -> ErrorList {
    messages.into_iter().map(|message| FieldError::invalid(path, id, message)).collect()
}

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn validate_seccomp_profile(context: &Value, path: &FieldPath) -> ErrorList {
    let Some(profile) = context.at("seccompProfile") else { return ErrorList::new() };
    let profile_type = profile.str_at("type");
    let mut errors = match profile_type {
        "" => vec![FieldError::required(&path.child("type"), "type is required when seccompProfile is set")],
        other => supported(other, &PROFILE_TYPES, &path.child("type")),
    };
    let path = path.child("localhostProfile");
    match (profile_type, profile.at("localhostProfile").and_then(Value::as_str)) {
        ("Localhost", None) => {
            errors.push(FieldError::required(&path, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(file)) => errors.extend(paths::validate_local_descending(file, &path)),
        (_, Some(_)) => {
            let detail = "can only be set when seccomp type is Localhost";
            let error = FieldError::invalid(&path, profile.clone(), detail);
            errors.push(pintle_internal_form::show(error, "*core.SeccompProfile"));
        }
        (_, None) => {}
    }
    errors
}

/// Validates an AppArmor profile.
pub(super) fn validate_app_armor_profile(profile: &Value, path: &FieldPath) -> ErrorList {
    const MAX_LENGTH: usize = 4095;
    const MUST_BE_SET: &str = "must be set when AppArmor type is Localhost";
    let file = profile.at("localhostProfile").and_then(Value::as_str);
    let file_path = path.child("localhostProfile");
    let mut errors = ErrorList::new();
    match (profile.str_at("type"), file) {
        ("Localhost", None) => errors.push(FieldError::required(&file_path, MUST_BE_SET)),
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                errors.push(FieldError::invalid(&file_path, file, "must not be padded with whitespace"));
            } else if file.is_empty() {
                errors.push(FieldError::required(&file_path, MUST_BE_SET));
            }
            if file.len() > MAX_LENGTH {
                errors.push(FieldError::too_long(&file_path, MAX_LENGTH));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            errors.push(FieldError::invalid(&file_path, file, detail).of_named_type());
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            let detail = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(&path.child("type"), detail));
        }
        (other, _) => errors.extend(supported(other, &PROFILE_TYPES, &path.child("type"))),
    }
    errors
}

const SYSCTL_MAX_LENGTH: usize = 253;
const SYSCTL_PATTERN: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

fn validate_sysctls(spec: &Value, options: &PodValidationOptions, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for (index, sysctl) in spec.items_at("securityContext.sysctls").iter().enumerate() {
        let path = path.index(index).child("name");
        let name = sysctl.str_at("name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl_name(name) {
            let detail =
                format!("must have at most {SYSCTL_MAX_LENGTH} characters and match regex {SYSCTL_PATTERN}");
            errors.push(FieldError::invalid(&path, name, detail));
        } else if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        if !options.allow_host_sysctls
            && let Some(field) = shared_namespace(name, spec)
        {
            let detail = format!("may not be specified when '{field}' is true");
            errors.push(FieldError::invalid(&path, name, detail));
        }
        seen.insert(name);
    }
    errors
}

/// Whether a spec sets a sysctl of a kernel namespace that the pod shares with its host.
pub(super) fn has_host_sysctl(spec: &Value) -> bool {
    let sysctls = spec.items_at("securityContext.sysctls");
    sysctls.iter().any(|sysctl| shared_namespace(sysctl.str_at("name"), spec).is_some())
}

/// The field that makes the pod share the sysctl's kernel namespace with its host, if it is set.
fn shared_namespace(sysctl: &str, spec: &Value) -> Option<&'static str> {
    let name = normalize_sysctl(sysctl);
    let name = name.split('*').next().unwrap_or_default();
    let is_ipc = matches!(
        name,
        "kernel.sem"
            | "kernel.shmall"
            | "kernel.shmmax"
            | "kernel.shmmni"
            | "kernel.shm_rmid_forced"
            | "kernel.shm"
            | "kernel.msgmax"
            | "kernel.msgmnb"
            | "kernel.msgmni"
            | "kernel.msg"
    ) || name.starts_with("fs.mqueue.");
    if name.starts_with("net.") && spec.bool_at("hostNetwork") {
        return Some("hostNetwork");
    }
    (is_ipc && spec.bool_at("hostIPC")).then_some("hostIPC")
}

/// Normalizes a sysctl name to dots as separators. If the first separator is a slash, dots and slashes are swapped.
fn normalize_sysctl(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(index) if name.as_bytes().get(index) == Some(&b'/') => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    }
}

fn is_sysctl_name(name: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(is_alphanumeric)
            && bytes.last().is_some_and(is_alphanumeric)
            && bytes.iter().all(|byte| is_alphanumeric(byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= SYSCTL_MAX_LENGTH && name.split(['.', '/']).all(is_segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileged_containers_are_refused_where_the_server_does_not_allow_them() {
        let path = FieldPath::new("securityContext");
        let errors = |privileged: bool, is_allowed: bool| {
            let errors =
                validate_privileged(&pintle_machinery::json!({"privileged": privileged}), is_allowed, &path);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(errors(true, true).is_empty() && errors(false, false).is_empty());
        assert_eq!(
            errors(true, false),
            ["securityContext.privileged: Forbidden: disallowed by cluster policy"]
        );
    }
}
