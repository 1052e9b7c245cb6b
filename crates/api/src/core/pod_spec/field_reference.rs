//! Validates references to the pod's own fields and resources: the downward API
//! (<https://kubernetes.io/docs/concepts/workloads/pods/downward-api/>).

use crate::field_checks::{invalid_each, supported_plain};
use crate::resource_list::quantity;
use pintle_machinery::validation::is_qualified_name;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// The place of a reference, which determines the fields that it may select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In an environment variable.
    Environment,
    /// In a file of a volume.
    Volume,
}

const ENVIRONMENT_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Valid field labels that neither place supports.
const OTHER_FIELDS: [&str; 3] = ["spec.restartPolicy", "spec.schedulerName", "status.phase"];

/// Validates a `fieldRef`.
pub(super) fn validate(reference: &Value, place: Place, path: &FieldPath) -> ErrorList {
    for field in ["apiVersion", "fieldPath"] {
        if reference.str_at(field).is_empty() {
            return vec![FieldError::required(&path.child(field), "")];
        }
    }
    let field = reference.str_at("fieldPath");
    match convert(reference.str_at("apiVersion"), field) {
        Err(why) => {
            let detail = format!("error converting fieldPath: {why}");
            vec![FieldError::invalid(&path.child("fieldPath"), field, detail)]
        }
        Ok(field) => match split_subscript(field) {
            Some(("metadata.annotations", key)) => invalid_each(
                path,
                &pintle_go_forms::to_lower(key),
                is_qualified_name(&pintle_go_forms::to_lower(key)),
            ),
            Some(("metadata.labels", key)) => invalid_each(path, key, is_qualified_name(key)),
            Some((field, _)) => vec![FieldError::invalid(path, field, "does not support subscript")],
            None => {
                let fields: &[&str] = match place {
                    Place::Environment => &ENVIRONMENT_FIELDS,
                    Place::Volume => &VOLUME_FIELDS,
                };
                supported_plain(field, fields, &path.child("fieldPath"))
            }
        },
    }
}

/// Converts a field to its current name, or returns the reason why it is not a field label.
fn convert<'a>(version: &str, field: &'a str) -> Result<&'a str, String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    match split_subscript(field) {
        Some(("metadata.annotations" | "metadata.labels", _)) => return Ok(field),
        Some(_) => return Err(format!("field label does not support subscript: {field}")),
        None => {}
    }
    if field == "spec.host" {
        return Ok("spec.nodeName");
    }
    let known = [&ENVIRONMENT_FIELDS[..], &VOLUME_FIELDS[..], &OTHER_FIELDS[..]];
    if known.iter().any(|fields| fields.contains(&field)) {
        return Ok(field);
    }
    Err(format!("field label not supported: {field}"))
}

/// Splits `metadata.labels['key']` into field and key.
fn split_subscript(field: &str) -> Option<(&str, &str)> {
    field.strip_suffix("']")?.split_once("['").filter(|(name, _)| !name.is_empty())
}

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const CPU_DIVISORS: [&str; 2] = ["1m", "1"];
const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates a `resourceFieldRef`.
pub(super) fn validate_resource(reference: &Value, place: Place, path: &FieldPath) -> ErrorList {
    let resource = reference.str_at("resource");
    let is_huge_pages =
        ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    let mut errors = ErrorList::new();
    if place == Place::Volume && reference.str_at("containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !is_huge_pages {
        errors.extend(supported_plain(resource, &RESOURCES, &path.child("resource")));
    }
    errors.extend(validate_divisor(reference, resource, is_huge_pages, &path.child("divisor")));
    errors
}

fn validate_divisor(reference: &Value, resource: &str, is_huge_pages: bool, path: &FieldPath) -> ErrorList {
    let divisor = quantity(reference.at("divisor").unwrap_or(&Value::Null));
    if divisor.is_zero() {
        return ErrorList::new();
    }
    let (divisors, values, what): (&[&str], _, _) = match resource {
        "limits.cpu" | "requests.cpu" => (&CPU_DIVISORS, "1m and 1", "cpu"),
        "limits.memory" | "requests.memory" => (&BYTE_DIVISORS, "", "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&BYTE_DIVISORS, "", "local ephemeral storage")
        }
        _ if is_huge_pages => (&BYTE_DIVISORS, "", "hugepages"),
        _ => return ErrorList::new(),
    };
    if divisors.contains(&divisor.to_string().as_str()) {
        return ErrorList::new();
    }
    let values = if values.is_empty() { divisors.join(", ") } else { values.to_owned() };
    let detail = format!("only divisor's values {values} are supported with the {what} resource");
    vec![FieldError::invalid(path, resource, detail)]
}
