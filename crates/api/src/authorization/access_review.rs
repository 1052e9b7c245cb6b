//! Rules that the access reviews of single actions share
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access>).

use super::group::GROUP_NAME;
use pintle_auth::authz::{Attributes, Authorizer, Decision, Selectors};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupKind, Status, UserInfo, Value, ValueExt, json,
    selectors::{FieldOperator, FieldTerm, LabelOperator, LabelRequirement},
    validation::{
        LabelSelectorOptions, validate_field_selector_requirement, validate_label_selector_requirement,
    },
};

/// Returns a 422 if a review has errors. Its message contains neither kind nor name.
pub(super) fn refuse(errors: &ErrorList) -> Result<(), Status> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(&GroupKind::new(GROUP_NAME, ""), "", errors)),
    }
}

/// Validates the action, and with `names_user` the user.
pub(super) fn validate_spec(review: &Value, names_user: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = FieldPath::new("spec");
    let resource = review.at("spec.resourceAttributes").filter(|value| !value.is_null());
    let non_resource = review.at("spec.nonResourceAttributes").filter(|value| !value.is_null());
    match (resource, non_resource) {
        (Some(_), Some(own)) => errors
            .push(invalid_non_resource(own, "cannot be specified in combination with resourceAttributes")),
        (None, None) => errors.push(FieldError::invalid(
            &spec.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if names_user && review.str_at("spec.user").is_empty() && review.items_at("spec.groups").is_empty() {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&spec.child("user"), "", detail));
    }
    let Some(resource) = resource else { return errors };
    let path = spec.child("resourceAttributes");
    errors.extend(validate_selector(resource, "fieldSelector", &path, |requirement, path| {
        validate_field_selector_requirement(requirement, true, path)
    }));
    let options = LabelSelectorOptions { allow_unknown_operator: true, ..LabelSelectorOptions::default() };
    errors.extend(validate_selector(resource, "labelSelector", &path, |requirement, path| {
        validate_label_selector_requirement(requirement, options, path)
    }));
    errors
}

pub(super) fn invalid_non_resource(attributes: &Value, detail: &str) -> FieldError {
    let path = FieldPath::new("spec").child("nonResourceAttributes");
    let member = |name: &str| Value::from(attributes.str_at(name));
    let shown = format!("{{\"Path\":{},\"Verb\":{}}}", member("path"), member("verb"));
    FieldError::invalid(&path, attributes.clone(), detail).shown_as(shown)
}

fn validate_selector(
    resource: &Value,
    name: &str,
    path: &FieldPath,
    validate: impl Fn(&Value, &FieldPath) -> ErrorList,
) -> ErrorList {
    let Some(selector) = resource.at(name).filter(|value| !value.is_null()) else { return ErrorList::new() };
    let path = path.child(name);
    let (raw, requirements) = (selector.str_at("rawSelector"), selector.items_at("requirements"));
    let mut errors = ErrorList::new();
    match (raw.is_empty(), requirements.is_empty()) {
        (false, false) => {
            let detail = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(&path.child("rawSelector"), raw, detail));
        }
        (true, true) => {
            let detail = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(&path.child("requirements"), detail));
        }
        _ => {}
    }
    for (index, requirement) in requirements.iter().enumerate() {
        errors.extend(validate(requirement, &path.child("requirements").index(index)));
    }
    errors
}

/// Rejects metadata on a review, which is not an object, except for `managedFields` and the namespace of the path.
pub(super) fn validate_metadata(review: &Value, in_namespace: bool) -> ErrorList {
    let metadata = review.map_at("metadata");
    let allowed = |name: &str| name == "managedFields" || in_namespace && name == "namespace";
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    };
    if metadata.iter().all(|(name, value)| allowed(name) || is_empty(value)) {
        return ErrorList::new();
    }
    let detail = if in_namespace { "must be empty except for namespace" } else { "must be empty" };
    let error = FieldError::invalid(&FieldPath::new("metadata"), metadata.clone(), detail);
    vec![error.shown_as(shown_in_order(metadata, METADATA_ORDER))]
}

/// The members of metadata, in the order of messages.
const METADATA_ORDER: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The members of an owner, in the order of messages.
const OWNER_ORDER: &[&str] = &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// The members of an entry of `managedFields`, in the order of messages.
const ENTRY_ORDER: &[&str] =
    &["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

fn shown_in_order(object: &pintle_machinery::Map, order: &[&str]) -> String {
    let known = order.iter().filter_map(|name| Some((*name, object.get(name)?)));
    let listed = |entries: &[Value], order| {
        let entries = entries.iter().filter_map(Value::as_object);
        entries.map(|entry| shown_in_order(entry, order)).collect::<Vec<_>>().join(",")
    };
    let members = known.map(|(name, value)| match (name, value) {
        ("managedFields", Value::Array(entries)) => format!("\"{name}\":[{}]", listed(entries, ENTRY_ORDER)),
        ("ownerReferences", Value::Array(owners)) => format!("\"{name}\":[{}]", listed(owners, OWNER_ORDER)),
        // A tree has the text of a set of fields.
        ("fieldsV1", Value::String(text)) => format!("\"{name}\":{text}"),
        _ => format!("\"{name}\":{value}"),
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The user whose access is reviewed.
pub(super) fn user_of(review: &Value) -> UserInfo {
    let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let extra = review.map_at("spec.extra").iter().map(|(key, values)| {
        (key.to_string(), texts(values.as_array().map(Vec::as_slice).unwrap_or_default()))
    });
    UserInfo {
        name: review.str_at("spec.user").to_owned(),
        uid: review.str_at("spec.uid").to_owned(),
        groups: texts(review.items_at("spec.groups")),
        extra: extra.collect(),
    }
}

/// Answers a valid review with the decision of the authorizers.
pub(super) async fn answer(authorizer: &dyn Authorizer, user: &UserInfo, mut review: Value) -> Value {
    let status = {
        let resource = review.at("spec.resourceAttributes").filter(|value| !value.is_null());
        let selectors = resource.and_then(selectors_of);
        let asked = match resource {
            Some(resource) => {
                let version = resource.str_at("version");
                Attributes {
                    namespace: resource.str_at("namespace"),
                    group: resource.str_at("group"),
                    version: if version.is_empty() { "*" } else { version },
                    resource: resource.str_at("resource"),
                    subresource: resource.str_at("subresource"),
                    name: resource.str_at("name"),
                    selectors: selectors.as_ref(),
                    ..Attributes::of(user, resource.str_at("verb"))
                }
            }
            None => Attributes {
                path: review.str_at("spec.nonResourceAttributes.path"),
                is_resource_request: false,
                ..Attributes::of(user, review.str_at("spec.nonResourceAttributes.verb"))
            },
        };
        let verdict = authorizer.authorize(&asked).await;
        let mut status = json!({"allowed": verdict.is_allowed()});
        if verdict.decision == Decision::Deny {
            status.set("denied", true);
        }
        if !verdict.reason.is_empty() {
            status.set("reason", verdict.reason.as_ref());
        }
        let mut errors = vec![verdict.error.into_owned()];
        if let Some(selectors) = &selectors {
            let ignored = |name: &str, error: &str, some: bool| match (error, some) {
                ("", _) => String::new(),
                (_, true) => {
                    format!("spec.resourceAttributes.{name} partially ignored due to parse error")
                }
                (_, false) => format!("spec.resourceAttributes.{name} ignored due to parse error"),
            };
            let (fields, labels) =
                (!selectors.field_terms.is_empty(), !selectors.label_requirements.is_empty());
            errors.push(ignored("fieldSelector", &selectors.field_error, fields));
            errors.push(ignored("labelSelector", &selectors.label_error, labels));
        }
        errors.retain(|error| !error.is_empty());
        if !errors.is_empty() {
            status.set("evaluationError", errors.join("; "));
        }
        status
    };
    review.set("status", status);
    review
}

/// The selectors of a review. Unreadable requirements are left out, which makes the reviewed access broader.
fn selectors_of(resource: &Value) -> Option<Selectors> {
    let raw = |name: &str| resource.str_at(&format!("{name}.rawSelector"));
    let requirements = |name: &str| resource.items_at(&format!("{name}.requirements"));
    let mut selectors = Selectors::parse(raw("fieldSelector"), raw("labelSelector"));
    for requirement in requirements("fieldSelector") {
        match field_term(requirement) {
            Ok(term) => selectors.field_terms.push(term),
            Err(error) => selectors.field_error = error,
        }
    }
    for requirement in requirements("labelSelector") {
        match label_requirement(requirement) {
            Ok(requirement) => selectors.label_requirements.push(requirement),
            Err(error) => selectors.label_error = error,
        }
    }
    (selectors != Selectors::default()).then_some(selectors)
}

fn field_term(requirement: &Value) -> Result<FieldTerm, String> {
    let operator = match requirement.str_at("operator") {
        "In" => FieldOperator::Equals,
        "NotIn" => FieldOperator::NotEquals,
        other => return Err(format!("field selectors do not have the operator {other}")),
    };
    match requirement.items_at("values") {
        [Value::String(value)] => {
            Ok(FieldTerm { field: requirement.str_at("key").to_owned(), operator, value: value.to_string() })
        }
        _ => Err("field selectors compare with one value".to_owned()),
    }
}

fn label_requirement(requirement: &Value) -> Result<LabelRequirement, String> {
    let operator = match requirement.str_at("operator") {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        other => return Err(format!("label selectors do not have the operator {other}")),
    };
    let values = requirement.items_at("values").iter().filter_map(Value::as_str).map(str::to_owned);
    LabelRequirement::new(requirement.str_at("key"), operator, values.collect())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
