//! Validates the spec of claims and of claim templates.

use super::{
    configuration::{CONFIG_MAX, validate_configuration, validate_selectors},
    device_selector::SelectorEffort,
    lists::{each, each_unique},
    names::{validate_class_name, validate_fully_qualified_name, validate_label},
};
use crate::field_checks::{invalid_each, supported};
use crate::gated_fields::GatedFields;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    validation::{is_valid_label_value, validate_label_name},
};

/// The maximum number of requests in a claim, and of references to them.
pub(super) const REQUESTS_MAX: usize = 32;
const CONSTRAINTS_MAX: usize = 32;
const FIRST_AVAILABLE_MAX: usize = 8;
/// The effects of device taints.
pub(super) const TAINT_EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

/// The fields of a claim's spec behind gates. Fields that a request has in place of others come first and are dropped first.
pub(super) const GATED: &[GatedFields] = &[
    GatedFields { gates: &[Gate::DRAPrioritizedList], fields: &["devices.requests[].firstAvailable"] },
    GatedFields { gates: &[Gate::DRAAdminAccess], fields: &["devices.requests[].exactly.adminAccess"] },
    GatedFields {
        gates: &[Gate::DRADeviceTaints],
        fields: &[
            "devices.requests[].exactly.tolerations",
            "devices.requests[].firstAvailable[].tolerations",
        ],
    },
    GatedFields {
        gates: &[Gate::DRAConsumableCapacity],
        fields: &[
            "devices.constraints[].distinctAttribute",
            "devices.requests[].exactly.capacity",
            "devices.requests[].firstAvailable[].capacity",
        ],
    },
];

/// Defaults each request to one device. `devices` contains the list of requests.
pub(super) fn set_defaults(devices: Option<&mut Value>) {
    let Some(devices) = devices else { return };
    for request in devices.items_at_mut("requests") {
        if let Some(exactly) = request.at_mut("exactly") {
            set_request_defaults(exactly);
        }
        request.items_at_mut("firstAvailable").iter_mut().for_each(set_request_defaults);
    }
}

fn set_request_defaults(request: &mut Value) {
    // The conversion from a version without the default leaves an empty mode.
    request.set_default("allocationMode", "ExactCount");
    if request.str_at("allocationMode") == "ExactCount" && count(request) == 0 {
        request.set("count", 1);
    }
}

fn count(request: &Value) -> i64 {
    request.i64_at("count").unwrap_or_default()
}

/// Validates the spec of a claim.
pub(super) fn validate(spec: &Value, path: &FieldPath) -> ErrorList {
    let path = path.child("devices");
    let names = RequestNames::of(spec);
    let requests = spec.items_at("devices.requests");
    let effort = SelectorEffort::new();
    let mut errors =
        each_unique(requests, REQUESTS_MAX, &path.child("requests"), name_of, |request, path| {
            validate_request(request, path, &effort)
        });
    let constraints = spec.items_at("devices.constraints");
    errors.extend(each(constraints, CONSTRAINTS_MAX, &path.child("constraints"), |constraint, path| {
        validate_constraint(constraint, &names, path)
    }));
    let config = spec.items_at("devices.config");
    errors.extend(each(config, CONFIG_MAX, &path.child("config"), |config, path| {
        let mut errors = names.validate_references(config, path);
        errors.extend(validate_configuration(config, false, path));
        errors
    }));
    errors
}

/// The key of requests and devices: their name.
pub(super) fn name_of(item: &Value) -> Value {
    item.str_at("name").into()
}

/// The names of a claim's requests, for references in the claim.
pub(super) struct RequestNames<'a> {
    requests: &'a [Value],
}

impl<'a> RequestNames<'a> {
    pub(super) fn of(spec: &'a Value) -> RequestNames<'a> {
        RequestNames { requests: spec.items_at("devices.requests") }
    }

    /// Validates the `requests` references of a constraint or configuration.
    pub(super) fn validate_references(&self, holder: &Value, path: &FieldPath) -> ErrorList {
        let references = holder.items_at("requests");
        each_unique(references, REQUESTS_MAX, &path.child("requests"), Value::clone, |name, path| {
            self.validate_reference(name.as_str().unwrap_or_default(), path)
        })
    }

    /// Validates a reference to a request, or to one of its alternatives.
    pub(super) fn validate_reference(&self, name: &str, path: &FieldPath) -> ErrorList {
        let unknown = || {
            let detail = "must be the name of a request in the claim or the name of a request and a subrequest \
                          separated by '/'";
            FieldError::invalid(path, name, detail)
        };
        let segments: Vec<&str> = name.split('/').collect();
        if segments.len() > 2 {
            return vec![unknown()];
        }
        let mut errors: ErrorList =
            segments.iter().flat_map(|segment| validate_label(segment, path)).collect();
        if !self.has(&segments) {
            errors.push(unknown());
        }
        errors
    }

    fn has(&self, segments: &[&str]) -> bool {
        let (Some(name), alternative) = (segments.first(), segments.get(1)) else { return false };
        // Of two requests with one name, an error reported elsewhere, the later counts.
        let Some(request) = self.requests.iter().rfind(|request| request.str_at("name") == *name) else {
            return false;
        };
        let alternatives = request.items_at("firstAvailable");
        alternative.is_none_or(|wanted| alternatives.iter().any(|other| other.str_at("name") == *wanted))
    }
}

fn validate_request(request: &Value, path: &FieldPath, effort: &SelectorEffort) -> ErrorList {
    const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";
    let mut errors = validate_label(request.str_at("name"), &path.child("name"));
    let alternatives = request.items_at("firstAvailable");
    match (request.at("exactly"), alternatives.is_empty()) {
        (None, true) => errors.push(FieldError::required(path, ONE_OF)),
        (Some(_), false) => {
            let detail = format!("{ONE_OF}, but multiple fields are set");
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        (Some(exactly), true) => errors.extend(validate_wanted(exactly, &path.child("exactly"), effort)),
        (None, false) => {
            let path = path.child("firstAvailable");
            errors.extend(each_unique(alternatives, FIRST_AVAILABLE_MAX, &path, name_of, |request, path| {
                let mut errors = validate_label(request.str_at("name"), &path.child("name"));
                errors.extend(validate_wanted(request, path, effort));
                errors
            }));
        }
    }
    errors
}

/// Validates the selection and the number of requested devices.
fn validate_wanted(request: &Value, path: &FieldPath, effort: &SelectorEffort) -> ErrorList {
    let class = request.str_at("deviceClassName");
    let mut errors = validate_class_name(class, &path.child("deviceClassName"));
    errors.extend(validate_selectors(request.items_at("selectors"), false, &path.child("selectors"), effort));
    let (count, count_path) = (count(request), path.child("count"));
    match request.str_at("allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(FieldError::invalid(&count_path, count, detail));
        }
        "ExactCount" if count <= 0 => {
            errors.push(FieldError::invalid(&count_path, count, "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        mode => {
            let modes = ["All", "ExactCount"];
            errors.push(FieldError::not_supported(&path.child("allocationMode"), mode, &modes));
        }
    }
    let path = path.child("tolerations");
    for (index, toleration) in request.items_at("tolerations").iter().enumerate() {
        errors.extend(validate_toleration(toleration, &path.index(index)));
    }
    errors
}

fn validate_toleration(toleration: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    let (key, value) = (toleration.str_at("key"), toleration.str_at("value"));
    if !key.is_empty() {
        errors.extend(validate_label_name(key, &path.child("key")));
    }
    match toleration.str_at("operator") {
        "Exists" if !value.is_empty() => {
            let detail = "must be empty for operator `Exists`";
            errors.push(FieldError::invalid(&path.child("value"), value, detail));
        }
        "Exists" => {}
        "Equal" => errors.extend(invalid_each(&path.child("value"), value, is_valid_label_value(value))),
        "" => errors.push(FieldError::required(&path.child("operator"), "")),
        operator => {
            let operators = ["Equal", "Exists"];
            errors.push(FieldError::not_supported(&path.child("operator"), operator, &operators));
        }
    }
    let effect = toleration.str_at("effect");
    if !effect.is_empty() {
        errors.extend(supported(effect, TAINT_EFFECTS, &path.child("effect")));
    }
    errors
}

fn validate_constraint(constraint: &Value, names: &RequestNames<'_>, path: &FieldPath) -> ErrorList {
    let mut errors = names.validate_references(constraint, path);
    let attribute = ["matchAttribute", "distinctAttribute"]
        .into_iter()
        .find_map(|field| Some((field, constraint.at(field)?.as_str().unwrap_or_default())));
    errors.extend(match attribute {
        Some((field, name)) => validate_fully_qualified_name(name, &path.child(field)),
        None if !enabled(Gate::DRAConsumableCapacity) => {
            vec![FieldError::required(&path.child("matchAttribute"), "")]
        }
        // As in the reference, the message is the one for both fields being set.
        None => vec![FieldError::required(
            path,
            r#"exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#,
        )],
    });
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(devices: Value, expected: &[&str]) {
        let mut spec = json!({"devices": devices});
        set_defaults(spec.at_mut("devices"));
        let errors = validate(&spec, &FieldPath::new("spec"));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let expected: Vec<String> = expected.iter().map(|error| format!("spec.devices.{error}")).collect();
        assert_eq!(errors, expected);
    }

    #[test]
    fn requests_are_for_one_device() {
        let mut devices = json!({"requests": [
            {"exactly": {}},
            {"exactly": {"allocationMode": "All"}},
            {"firstAvailable": [{"allocationMode": "ExactCount", "count": 3}, {}]},
        ]});
        set_defaults(Some(&mut devices));
        let one = json!({"allocationMode": "ExactCount", "count": 1});
        assert_eq!(
            devices,
            json!({"requests": [
                {"exactly": one},
                {"exactly": {"allocationMode": "All"}},
                {"firstAvailable": [{"allocationMode": "ExactCount", "count": 3}, one]},
            ]})
        );
    }

    #[test]
    fn requests_are_checked() {
        let class = json!({"deviceClassName": "c"});
        check(json!({"requests": [{"name": "a", "exactly": class}]}), &[]);
        check(
            json!({"requests": [{"name": "a"}]}),
            &["requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"],
        );
        check(
            json!({"requests": [{"name": "a", "exactly": class, "firstAvailable": [{"name": "b", "deviceClassName": "c"}]}]}),
            &[
                "requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
            ],
        );
        check(
            json!({"requests": [{"name": "a", "exactly": class}, {"name": "a", "exactly": class}]}),
            &[r#"requests[1]: Duplicate value: "a""#],
        );
        let exactly = |more: Value| {
            let mut exactly = class.clone();
            for (name, value) in more.as_object().into_iter().flatten() {
                exactly.set(name, value.clone());
            }
            json!({"requests": [{"name": "a", "exactly": exactly}]})
        };
        check(
            exactly(json!({"count": -1})),
            &["requests[0].exactly.count: Invalid value: -1: must be greater than zero"],
        );
        check(
            exactly(json!({"allocationMode": "All", "count": 2})),
            &[
                "requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
            ],
        );
        check(
            exactly(
                json!({"tolerations": [{"operator": "Exists", "value": "v"}, {}, {"operator": "Equal", "effect": "Odd"}]}),
            ),
            &[
                r#"requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`"#,
                "requests[0].exactly.tolerations[1].operator: Required value",
                r#"requests[0].exactly.tolerations[2].effect: Unsupported value: "Odd": supported values: "NoExecute", "NoSchedule", "None""#,
            ],
        );
    }

    #[test]
    fn references_are_to_requests() {
        let names = json!({"devices": {"requests": [
            {"name": "a", "exactly": {}},
            {"name": "b", "firstAvailable": [{"name": "c"}]},
        ]}});
        let names = RequestNames::of(&names);
        let check = |name: &str, known: bool| {
            assert_eq!(names.validate_reference(name, &FieldPath::new("f")).is_empty(), known, "{name}");
        };
        for known in ["a", "b", "b/c"] {
            check(known, true);
        }
        for unknown in ["c", "a/c", "b/d", "b/c/d", ""] {
            check(unknown, false);
        }
    }
}
