//! Operations, independent of the OpenAPI version.

use crate::parameters::Parameter;
use pintle_machinery::{GroupVersionKind, Map, json};
use std::collections::BTreeMap;

/// The media types of objects.
pub(crate) const OBJECT_MEDIA: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The media types of lists, which may be watched.
pub(crate) const LIST_MEDIA: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// The media types of logs.
pub(crate) const LOG_MEDIA: &[&str] =
    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The media types of patches.
pub(crate) const PATCH_MEDIA: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// Any media type.
pub(crate) const ANY_MEDIA: &[&str] = &["*/*"];

/// All operations by path and method.
pub(crate) type Paths = BTreeMap<String, BTreeMap<&'static str, Operation>>;

/// The content of a request or a response.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// A value of a definition.
    Definition(String),
    /// Text or a stream.
    Text,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) definition: String,
    pub(crate) required: bool,
    pub(crate) media: &'static [&'static str],
}

/// One operation on a path.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) tag: String,
    pub(crate) action: Option<&'static str>,
    pub(crate) kind: Option<GroupVersionKind>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// Status codes of success; 401 is added to every operation.
    pub(crate) codes: &'static [u16],
    pub(crate) answer: Payload,
    /// The media types that OpenAPI 2 lists for the request, with or without a body; none if it does not say.
    pub(crate) consumes: &'static [&'static str],
    /// The media types of the response.
    pub(crate) media: &'static [&'static str],
}

impl Operation {
    /// The names of the definitions that the operation refers to.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &str> {
        let answer = match &self.answer {
            Payload::Definition(definition) => Some(definition.as_str()),
            Payload::Text => None,
        };
        self.body.iter().map(|body| body.definition.as_str()).chain(answer)
    }
}

/// The description of a status code.
pub(crate) fn meaning(code: u16) -> &'static str {
    match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        _ => "Unauthorized",
    }
}

/// The parameters that all operations of a path share; they are declared once, on the path.
pub(crate) fn common_parameters(operations: &BTreeMap<&'static str, Operation>) -> Vec<Parameter> {
    let mut all = operations.values();
    let mut common = all.next().map(|first| first.parameters.clone()).unwrap_or_default();
    for operation in all {
        common.retain(|parameter| operation.parameters.contains(parameter));
    }
    sort(&mut common);
    common
}

/// The parameters of an operation that are not shared.
pub(crate) fn own_parameters(operation: &Operation, common: &[Parameter]) -> Vec<Parameter> {
    let mut own = operation.parameters.clone();
    own.retain(|parameter| !common.contains(parameter));
    sort(&mut own);
    own
}

/// Sorts parameters by name; a path parameter precedes a query parameter.
fn sort(parameters: &mut [Parameter]) {
    parameters.sort_by_key(|parameter| (parameter.name, !parameter.in_path));
}

/// Adds the extensions that Kubernetes' clients read from an operation.
pub(crate) fn add_extensions(operation: &Operation, value: &mut Map) {
    if let Some(action) = operation.action {
        value.insert("x-kubernetes-action", json!(action));
    }
    if let Some(kind) = &operation.kind {
        let kind = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        value.insert("x-kubernetes-group-version-kind", kind);
    }
}
