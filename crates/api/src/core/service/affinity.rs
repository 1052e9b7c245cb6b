//! Validates the session affinity of services.

use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

const MAX_SECONDS: i64 = 86400;

pub(super) fn validate(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = FieldPath::new("spec").child("sessionAffinity");
    let config_path = FieldPath::new("spec").child("sessionAffinityConfig");
    match service.str_at("spec.sessionAffinity") {
        "" => errors.push(FieldError::required(&path, "")),
        "ClientIP" => errors.extend(validate_config(service, &config_path)),
        "None" => {
            if service.at("spec.sessionAffinityConfig").is_some() {
                let detail = "must not be set when session affinity is None";
                errors.push(FieldError::forbidden(&config_path, detail));
            }
        }
        other => errors.push(FieldError::not_supported(&path, other, &["ClientIP", "None"])),
    }
    errors
}

fn validate_config(service: &Value, path: &FieldPath) -> ErrorList {
    let required =
        |path: &FieldPath| vec![FieldError::required(path, "when session affinity type is ClientIP")];
    let Some(config) = service.at("spec.sessionAffinityConfig") else { return required(path) };
    let path = path.child("clientIP");
    let Some(client_ip) = config.field("clientIP") else { return required(&path) };
    let path = path.child("timeoutSeconds");
    match client_ip.i64_at("timeoutSeconds") {
        None => required(&path),
        Some(seconds) if (1..=MAX_SECONDS).contains(&seconds) => ErrorList::new(),
        Some(seconds) => {
            let detail = format!("must be greater than 0 and less than {MAX_SECONDS}");
            vec![FieldError::invalid(&path, seconds, detail)]
        }
    }
}
