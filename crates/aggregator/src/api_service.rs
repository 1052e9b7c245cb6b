//! API services: the registration of the server for each group and version
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>).

use crate::condition::{AVAILABLE, Availability, condition};
use jiff::Timestamp;
use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupResource, GroupVersionKind, Value, ValueExt, meta,
    validation::{
        is_dns1035_label, is_dns1123_subdomain, is_valid_port_num, validate_object_meta_accessor,
        validate_object_meta_accessor_update, validate_path_segment_name,
    },
};
use pintle_registry::{
    Cell, Column, RequestContext, Resource, Scope, StorageEncoding, StoredVersion, Strategy, Subresource,
    SubresourceKind, TableConvertor, Verb, keep,
};
use std::sync::Arc;

/// The declaration of the resource.
pub(crate) fn resource() -> Resource {
    let mut resource = Resource::new(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "apiservice",
        "APIService",
        Scope::Cluster,
        "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIService",
    );
    resource.categories = vec!["api-extensions".to_owned()];
    // The aggregator keeps its group in the path, unlike the built-in groups.
    resource.storage.path = "apiregistration.k8s.io/apiservices".to_owned();
    // Always JSON, as in kube-apiserver's aggregator.
    resource.storage.encoding = StorageEncoding::Json;
    // The former storage version differs only in its name.
    resource.stored_versions = vec![StoredVersion {
        kind: GroupVersionKind::new("apiregistration.k8s.io", "v1beta1", "APIService"),
        type_name: String::new(),
        to_storage: |object| object,
    }];
    resource.table = Arc::new(ApiServiceTable);
    resource.strategy = Arc::new(ApiServiceStrategy);
    resource.subresources = vec![Subresource {
        name: "status".to_owned(),
        kind: SubresourceKind::Object {
            strategy: Arc::new(StatusStrategy),
            verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
            has_table: false,
        },
    }];
    resource
}

/// The group and the plural name of API services.
pub(crate) fn resource_name() -> GroupResource {
    GroupResource::new("apiregistration.k8s.io", "apiservices")
}

struct ApiServiceStrategy;

impl Strategy for ApiServiceStrategy {
    fn set_defaults(&self, object: &mut Value) {
        if object.at("spec.service").is_some() {
            object.set_default("spec.service.port", 443);
        }
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at("status");
        if object.at("spec.service").is_none() {
            Availability::local().set(object);
        }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate_object_meta_accessor_update(object, old, &FieldPath::new("metadata"));
        errors.extend(validate(object));
        errors
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }
}

/// The rules for writes to `status`.
struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "metadata"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        for part in [
            "spec",
            "metadata.labels",
            "metadata.annotations",
            "metadata.finalizers",
            "metadata.ownerReferences",
        ] {
            keep(object, old, part);
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate_object_meta_accessor_update(object, old, &FieldPath::new("metadata"));
        let path = FieldPath::new("status").child("conditions");
        for (index, condition) in object.items_at("status.conditions").iter().enumerate() {
            let status = condition.str_at("status");
            let known = ["True", "False", "Unknown"];
            if !known.contains(&status) {
                errors.push(FieldError::not_supported(&path.index(index).child("status"), status, &known));
            }
        }
        errors
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// Validates by <https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/api-service-v1/>.
fn validate(object: &Value) -> ErrorList {
    let (group, version) = (object.str_at("spec.group"), object.str_at("spec.version"));
    let required_name = format!("{version}.{group}");
    let check_name = |name: &str, prefix: bool| match validate_path_segment_name(name, prefix) {
        problems if problems.is_empty() && name != required_name => {
            vec![format!("must be `spec.version+\".\"+spec.group`: {}", quote(&required_name))]
        }
        problems => problems,
    };
    let mut errors = validate_object_meta_accessor(object, false, check_name, &FieldPath::new("metadata"));
    let spec = FieldPath::new("spec");
    let path = spec.child("group");
    if group.is_empty() {
        if version != "v1" {
            let detail = "only v1 may have an empty group and it better be legacy kube";
            errors.push(FieldError::required(&path, detail));
        }
    } else {
        let problems = is_dns1123_subdomain(group).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(&path, group, problem)));
    }
    let path = spec.child("version");
    let problems = is_dns1035_label(version).into_iter();
    errors.extend(problems.map(|problem| FieldError::invalid(&path, version, problem)));
    for (name, most) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        let priority = object.i64_at(&format!("spec.{name}")).unwrap_or_default();
        if !(1..=most).contains(&priority) {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&spec.child(name), priority, detail));
        }
    }
    let ca_bundle = byte_length(object.str_at("spec.caBundle"));
    let insecure = object.bool_at("spec.insecureSkipTLSVerify");
    let Some(service) = object.at("spec.service") else {
        if ca_bundle > 0 {
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(&spec.child("caBundle"), format!("{ca_bundle} bytes"), detail));
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(&spec.child("insecureSkipTLSVerify"), true, detail));
        }
        return errors;
    };
    let path = spec.child("service");
    for name in ["namespace", "name"] {
        if service.str_at(name).is_empty() {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    let port = service.i64_at("port").unwrap_or_default();
    let problems = is_valid_port_num(port);
    if !problems.is_empty() {
        let detail = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if insecure && ca_bundle > 0 {
        let detail = "may not be true if caBundle is present";
        errors.push(FieldError::invalid(&spec.child("insecureSkipTLSVerify"), true, detail));
    }
    errors
}

/// The number of bytes that a base64 text encodes.
fn byte_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// The columns: the service behind the version, and its availability.
struct ApiServiceTable;

impl TableConvertor for ApiServiceTable {
    fn columns(&self) -> Vec<Column> {
        vec![
            Column::name(),
            Column::string("Service", 0, "The service that serves the version; Local is this server."),
            Column::string("Available", 0, "Whether it can be reached."),
            Column::age(),
        ]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Cell> {
        let service = match object.at("spec.service") {
            Some(service) => format!("{}/{}", service.str_at("namespace"), service.str_at("name")),
            None => "Local".to_owned(),
        };
        let age = meta::translate_timestamp_since(object.str_at("metadata.creationTimestamp"), now);
        vec![object.str_at("metadata.name").into(), service.into(), availability(object).into(), age.into()]
    }
}

/// The status of the `Available` condition, with the reason unless it is `True`.
fn availability(object: &Value) -> String {
    match condition(object, AVAILABLE) {
        None => "Unknown".to_owned(),
        Some(condition) => match (condition.str_at("status"), condition.str_at("reason")) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::testing::{self, MemoryRegistry};

    fn with_context(test: impl FnOnce(&RequestContext<'_>)) {
        testing::with_context(&MemoryRegistry::default(), "", false, test);
    }

    #[test]
    fn availability_shows_the_reason_of_trouble() {
        let check = |condition: Value, expected: &str| {
            assert_eq!(availability(&json!({"status": {"conditions": [condition]}})), expected);
        };
        check(json!({"type": "Other", "status": "True"}), "Unknown");
        check(json!({"type": "Available", "status": "True", "reason": "Local"}), "True");
        check(json!({"type": "Available", "status": "False", "reason": "Missing"}), "False (Missing)");
        check(json!({"type": "Available", "status": "False"}), "False");
    }

    #[test]
    fn a_local_api_service_is_available_from_the_start() {
        let mut object = json!({"status": {"conditions": [
            {"type": "Other", "status": "True"},
            {"type": "Available", "status": "True", "reason": "Passed", "lastTransitionTime": "then"},
        ]}});
        assert!(Availability::local().set(&mut object));
        let condition = object.items_at("status.conditions")[1].clone();
        assert_eq!((condition.str_at("reason"), condition.str_at("lastTransitionTime")), ("Local", "then"));
        assert!(!Availability::local().set(&mut object));
        let mut object = json!({"status": {"conditions": [{"type": "Available", "status": "False",
            "lastTransitionTime": "then"}]}});
        assert!(Availability::local().set(&mut object));
        assert_ne!(object.items_at("status.conditions")[0].str_at("lastTransitionTime"), "then");
    }

    #[test]
    fn writes_of_the_object_and_of_its_status_change_their_own_part() {
        let old = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"version": "v1"},
            "status": {"conditions": [{"type": "Available"}]}});
        let written = json!({"metadata": {"labels": {"a": "2"}}, "spec": {"version": "v2"},
            "status": {"conditions": []}});
        with_context(|context| {
            let mut object = written.clone();
            ApiServiceStrategy.prepare_for_update(context, &mut object, &old);
            assert_eq!(object["status"], old["status"]);
            assert_eq!((&object["spec"], &object["metadata"]), (&written["spec"], &written["metadata"]));
            let mut object = written.clone();
            StatusStrategy.prepare_for_update(context, &mut object, &old);
            assert_eq!(object["status"], written["status"]);
            assert_eq!((&object["spec"], &object["metadata"]), (&old["spec"], &old["metadata"]));
        });
    }

    #[test]
    fn a_new_api_service_has_no_status_unless_it_is_local() {
        with_context(|context| {
            let mut object = json!({"spec": {"service": {"name": "s"}}, "status": {"conditions": []}});
            ApiServiceStrategy.set_defaults(&mut object);
            ApiServiceStrategy.prepare_for_create(context, &mut object);
            assert_eq!(object, json!({"spec": {"service": {"name": "s", "port": 443}}}));
            let mut object = json!({"spec": {}});
            ApiServiceStrategy.set_defaults(&mut object);
            ApiServiceStrategy.prepare_for_create(context, &mut object);
            assert_eq!(object["status"]["conditions"][0]["reason"], "Local");
        });
    }

    #[test]
    fn a_condition_has_a_known_status() {
        let object = |status: &str| {
            json!({"metadata": {"name": "v1.a", "resourceVersion": "1"},
                "status": {"conditions": [{"type": "Available", "status": status}]}})
        };
        let check = |status: &str, expected: &[&str]| {
            with_context(|context| {
                let errors = StatusStrategy.validate_update(context, &object(status), &object("True"));
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                assert_eq!(errors, expected);
            });
        };
        check("Unknown", &[]);
        check(
            "Perhaps",
            &[
                r#"status.conditions[0].status: Unsupported value: "Perhaps": supported values: "True", "False", "Unknown""#,
            ],
        );
    }

    #[test]
    fn validation_has_the_messages_of_the_reference() {
        let check = |name: &str, spec: Value, expected: &[&str]| {
            let object = json!({"metadata": {"name": name}, "spec": spec});
            let errors: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected, "{object}");
        };
        let with = |members: Value| {
            let mut spec =
                json!({"group": "a.b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
            for (name, value) in members.as_object().unwrap() {
                spec[name] = value.clone();
            }
            spec
        };
        let service = |port: i64| json!({"namespace": "n", "name": "s", "port": port});
        check("v1.a.b", with(json!({})), &[]);
        check("v1.a.b", with(json!({"service": service(443), "caBundle": "aGVsbG8="})), &[]);
        check("v1.", json!({"version": "v1", "groupPriorityMinimum": 20000, "versionPriority": 1000}), &[]);
        check(
            "v2.",
            json!({"version": "v2", "groupPriorityMinimum": 20001, "versionPriority": 1001}),
            &[
                "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
                "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        );
        check(
            "other",
            with(json!({})),
            &["metadata.name: Invalid value: \"other\": must be `spec.version+\".\"+spec.group`: \"v1.a.b\""],
        );
        check(
            "v1.a.b",
            with(json!({"caBundle": "aGVsbG8=", "insecureSkipTLSVerify": true})),
            &[
                "spec.caBundle: Invalid value: \"5 bytes\": local APIServices may not have a caBundle",
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ],
        );
        check(
            "v1.a.b",
            with(json!({"service": service(0), "caBundle": "aGVsbG8=", "insecureSkipTLSVerify": true})),
            &[
                "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            ],
        );
    }
}
