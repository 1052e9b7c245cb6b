//! Validates probes and lifecycle hooks
//! (<https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-probes>).

use crate::field_checks::{invalid_each, supported};
use pintle_machinery::validation::{
    is_http_header_name, is_valid_port_name, is_valid_port_num, validate_nonnegative_field,
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// The handlers of probes and hooks; neither supports all of them.
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// Validates the three probes of a container.
pub(super) fn validate_probes(container: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.at(field) else { continue };
        let path = path.child(field);
        errors.extend(validate_probe(probe, &path));
        if field == "readinessProbe" {
            if let Some(seconds) = probe.at("terminationGracePeriodSeconds") {
                let path = path.child("terminationGracePeriodSeconds");
                let detail = "must not be set for readinessProbes";
                errors.push(FieldError::invalid(&path, seconds.clone(), detail));
            }
        } else {
            let threshold = probe.i64_at("successThreshold").unwrap_or_default();
            if threshold != 1 {
                errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
            }
        }
    }
    errors
}

fn validate_probe(probe: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_handler(probe, None, path);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        let value = probe.i64_at(field).unwrap_or_default();
        errors.extend(validate_nonnegative_field(value, &path.child(field)));
    }
    if let Some(seconds) = probe.i64_at("terminationGracePeriodSeconds").filter(|seconds| *seconds <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
    }
    errors
}

/// Validates a `lifecycle`; `os` is the name of the pod's operating system, if it is set.
pub(super) fn validate_lifecycle(
    lifecycle: &Value,
    grace_period: Option<i64>,
    os: Option<&str>,
    path: &FieldPath,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for field in ["postStart", "preStop"] {
        if let Some(handler) = lifecycle.at(field) {
            errors.extend(validate_handler(handler, grace_period, &path.child(field)));
        }
    }
    if lifecycle.at("stopSignal").is_some() {
        errors.extend(validate_stop_signal(lifecycle.str_at("stopSignal"), os, &path.child("stopSignal")));
    }
    errors
}

const STOP_SIGNALS: [&str; 36] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGRTMIN",
    "SIGRTMAX",
];

fn validate_stop_signal(signal: &str, os: Option<&str>, path: &FieldPath) -> ErrorList {
    match os {
        None => {
            let detail = "may not be set for containers with empty `spec.os.name`";
            vec![FieldError::forbidden(path, detail)]
        }
        Some("windows") => supported(signal, &["SIGKILL", "SIGTERM"], path),
        Some("linux") => {
            let mut signals: Vec<String> = STOP_SIGNALS.iter().map(|signal| (*signal).to_owned()).collect();
            signals.extend((1..=15).map(|number| format!("SIGRTMIN+{number}")));
            signals.extend((1..=14).map(|number| format!("SIGRTMAX-{number}")));
            signals.sort();
            let signals: Vec<&str> = signals.iter().map(String::as_str).collect();
            supported(signal, &signals, path)
        }
        Some(_) => ErrorList::new(),
    }
}

fn validate_handler(handler: &Value, grace_period: Option<i64>, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    for field in HANDLERS {
        let Some(action) = handler.at(field) else { continue };
        let path = path.child(field);
        if found {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match field {
            "exec" if action.items_at("command").is_empty() => {
                errors.push(FieldError::required(&path.child("command"), ""));
            }
            "httpGet" => errors.extend(validate_http_get(action, &path)),
            "tcpSocket" | "grpc" => errors.extend(validate_port(action, &path.child("port"))),
            "sleep" => errors.extend(validate_sleep(action, grace_period, &path)),
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    errors
}

fn validate_http_get(action: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = crate::field_checks::required(action, "path", path);
    errors.extend(validate_port(action, &path.child("port")));
    errors.extend(supported(action.str_at("scheme"), &["HTTP", "HTTPS"], &path.child("scheme")));
    for header in action.items_at("httpHeaders") {
        let name = header.str_at("name");
        errors.extend(invalid_each(&path.child("httpHeaders"), name, is_http_header_name(name)));
    }
    errors
}

/// Validates a port, given as number or name.
fn validate_port(action: &Value, path: &FieldPath) -> ErrorList {
    match action.at("port") {
        Some(Value::String(name)) => invalid_each(path, name, is_valid_port_name(name)),
        port => {
            let number = port.and_then(Value::as_i64).unwrap_or_default();
            is_valid_port_num(number)
                .into_iter()
                .map(|message| FieldError::invalid(path, number, message))
                .collect()
        }
    }
}

/// Validates a sleep action; `grace_period` (in seconds) is absent when it is invalid, and then not compared.
fn validate_sleep(action: &Value, grace_period: Option<i64>, path: &FieldPath) -> ErrorList {
    let seconds = action.i64_at("seconds").unwrap_or_default();
    match grace_period {
        Some(limit) if seconds < 0 || seconds > limit => {
            let detail =
                format!("must be non-negative and less than terminationGracePeriodSeconds ({limit})");
            vec![FieldError::invalid(path, seconds, detail)]
        }
        _ => ErrorList::new(),
    }
}
