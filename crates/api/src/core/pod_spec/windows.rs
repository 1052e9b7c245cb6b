//! Validates Windows options, and the fields that the pod's operating system does not support
//! (<https://kubernetes.io/docs/concepts/windows/intro/>).

use super::containers_of::containers_with_path;
use crate::field_checks::{invalid_each_of_named_type, supported};
use pintle_machinery::validation::is_dns1123_subdomain;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

const MAX_CREDENTIAL_SPEC_KIB: usize = 64;
const MAX_DOMAIN_LENGTH: usize = 256;
const MAX_USER_LENGTH: usize = 104;

/// Validates the `windowsOptions` of a security context.
pub(super) fn validate_options(context: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(options) = context.at("windowsOptions") else { return errors };
    let text = |field: &str| options.at(field).and_then(Value::as_str);
    if let Some(name) = text("gmsaCredentialSpecName") {
        errors.extend(invalid_each_of_named_type(
            &path.child("gmsaCredentialSpecName"),
            name,
            is_dns1123_subdomain(name),
        ));
    }
    if let Some(spec) = text("gmsaCredentialSpec") {
        let path = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.push(
                FieldError::invalid(&path, spec, "gmsaCredentialSpec cannot be an empty string")
                    .of_named_type(),
            );
        } else if spec.len() > MAX_CREDENTIAL_SPEC_KIB * 1024 {
            let detail = format!("gmsaCredentialSpec size must be under {MAX_CREDENTIAL_SPEC_KIB} KiB");
            errors.push(FieldError::invalid(&path, spec, detail).of_named_type());
        }
    }
    if let Some(name) = text("runAsUserName") {
        let path = path.child("runAsUserName");
        let details = user_name_errors(name).into_iter();
        errors.extend(details.map(|detail| FieldError::invalid(&path, name, detail).of_named_type()));
    }
    errors
}

/// Validates the form `DOMAIN\user`, in which the domain is optional.
fn user_name_errors(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    if name.matches('\\').count() > 1 {
        return vec!["runAsUserName cannot contain more than one backslash".to_owned()];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut errors = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= MAX_DOMAIN_LENGTH {
            errors
                .push(format!("runAsUserName's Domain length must be under {MAX_DOMAIN_LENGTH} characters"));
        }
        if !is_net_bios_name(domain) && !is_domain(domain) {
            errors.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
        }
    }
    if user.is_empty() {
        errors.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > MAX_USER_LENGTH {
        errors.push(format!(
            "runAsUserName's User length must not be longer than {MAX_USER_LENGTH} characters"
        ));
    }
    if !user.is_empty() && user.bytes().all(|byte| matches!(byte, b'.' | b' ')) {
        errors.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| r#""/\:;|=,+*?<>@[]"#.contains(c)) {
        errors.push(
            r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#.to_owned(),
        );
    }
    errors
}

fn is_net_bios_name(domain: &str) -> bool {
    let count = domain.chars().count();
    (1..=15).contains(&count) && !domain.starts_with('.') && !domain.contains(|c| r#"\/:*?"<>|"#.contains(c))
}

fn is_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.len() <= 63
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    })
}

/// Validates `HostProcess` containers: all containers of a pod or none, only in the host network, and only where the
/// server allows privileged containers.
pub(super) fn validate_host_processes(spec: &Value, is_allowed: bool, path: &FieldPath) -> ErrorList {
    const FIELD: &str = "securityContext.windowsOptions.hostProcess";
    let of_pod = spec.at(FIELD).and_then(Value::as_bool);
    let mut errors = ErrorList::new();
    let (mut count, mut host_processes) = (0, 0);
    for (_, path, container) in containers_with_path(spec, path) {
        count += 1;
        let own = container.at(FIELD).and_then(Value::as_bool);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = path.child("securityContext").child("windowsOptions").child("hostProcess");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.push(FieldError::invalid(&path, own, detail));
        }
        host_processes += usize::from(own.or(of_pod) == Some(true));
    }
    if host_processes == 0 {
        return errors;
    }
    if host_processes != count {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if !spec.bool_at("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), false, detail));
    }
    if !is_allowed {
        errors.push(FieldError::forbidden(path, "hostProcess containers are disallowed by cluster policy"));
    }
    errors
}

/// Pod fields that only Linux supports.
const NOT_FOR_WINDOWS_PODS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
/// Fields of a container's security context that only Linux supports.
const NOT_FOR_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates `os`, and rejects fields that do not apply to it.
pub(super) fn validate_os(spec: &Value, path: &FieldPath) -> ErrorList {
    let Some(os) = spec.at("os") else { return ErrorList::new() };
    let name = os.str_at("name");
    let errors = match name {
        "" => vec![FieldError::required(&path.child("os").child("name"), "")],
        // As in the reference, the error of an unsupported name has the path of `os`.
        _ => supported(name, &["linux", "windows"], &path.child("os")),
    };
    if !errors.is_empty() {
        return errors;
    }
    if name == "linux" { validate_linux(spec, path) } else { validate_windows(spec, path) }
}

fn validate_linux(spec: &Value, path: &FieldPath) -> ErrorList {
    const DETAIL: &str = "windows options cannot be set for a linux pod";
    let mut errors = ErrorList::new();
    let mut check = |object: &Value, path: &FieldPath| {
        if object.at("securityContext.windowsOptions").is_some() {
            let path = path.child("securityContext").child("windowsOptions");
            errors.push(FieldError::forbidden(&path, DETAIL));
        }
    };
    check(spec, path);
    for (_, path, container) in containers_with_path(spec, path) {
        check(container, &path);
    }
    errors
}

fn validate_windows(spec: &Value, path: &FieldPath) -> ErrorList {
    const DETAIL: &str = "cannot be set for a windows pod";
    let is_set = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let mut errors = ErrorList::new();
    for field in NOT_FOR_WINDOWS_PODS {
        // These two are plain booleans: false counts as unset.
        let plain = matches!(field, "hostPID" | "hostIPC");
        if spec.at(field).is_some_and(is_set) && (!plain || spec.bool_at(field)) {
            let path = field.split('.').fold(path.clone(), |path, name| path.child(name));
            errors.push(FieldError::forbidden(&path, DETAIL));
        }
    }
    for (_, path, container) in containers_with_path(spec, path) {
        let path = path.child("securityContext");
        for field in NOT_FOR_WINDOWS_CONTAINERS {
            if container.at("securityContext").and_then(|context| context.field(field)).is_some() {
                errors.push(FieldError::forbidden(&path.child(field), DETAIL));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn host_processes_are_refused_where_the_server_does_not_allow_privileged_containers() {
        let check = |host_process: bool, is_allowed: bool, expected: &[&str]| {
            let spec = json!({
                "hostNetwork": true,
                "securityContext": {"windowsOptions": {"hostProcess": host_process}},
                "containers": [{"name": "c"}],
            });
            let errors = validate_host_processes(&spec, is_allowed, &FieldPath::new("spec"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{spec}");
        };
        check(true, true, &[]);
        check(false, false, &[]);
        check(true, false, &["spec: Forbidden: hostProcess containers are disallowed by cluster policy"]);
    }
}
