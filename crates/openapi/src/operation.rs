//! Operations, before they are written as OpenAPI 2 or 3.

use crate::parameters::Parameter;
use pintle_machinery::GroupVersionKind;
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

/// Whatever there is.
pub(crate) const ANY_MEDIA: &[&str] = &["*/*"];

/// All operations by path and method.
pub(crate) type Paths = BTreeMap<String, BTreeMap<&'static str, Operation>>;

/// What a request or an answer carries.
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
    /// Status codes of success; that of missing credentials is everywhere.
    pub(crate) codes: &'static [u16],
    pub(crate) answer: Payload,
    /// The media types that OpenAPI 2 says a request may have, whether it has a body or not.
    pub(crate) consumes: &'static [&'static str],
    /// The media types of the answer.
    pub(crate) media: &'static [&'static str],
}

impl Operation {
    /// The definitions that the operation needs.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &str> {
        let answer = match &self.answer {
            Payload::Definition(definition) => Some(definition.as_str()),
            Payload::Text => None,
        };
        self.body.iter().map(|body| body.definition.as_str()).chain(answer)
    }
}

/// What a status code means.
pub(crate) fn meaning(code: u16) -> &'static str {
    match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        _ => "Unauthorized",
    }
}

/// The parameters that all operations of a path have; they are said once, for the path.
pub(crate) fn common_parameters(operations: &BTreeMap<&'static str, Operation>) -> Vec<Parameter> {
    let mut all = operations.values();
    let mut common = all.next().map(|first| first.parameters.clone()).unwrap_or_default();
    for operation in all {
        common.retain(|parameter| operation.parameters.contains(parameter));
    }
    sort(&mut common);
    common
}

/// The parameters that an operation has for itself.
pub(crate) fn own_parameters(operation: &Operation, common: &[Parameter]) -> Vec<Parameter> {
    let mut own = operation.parameters.clone();
    own.retain(|parameter| !common.contains(parameter));
    sort(&mut own);
    own
}

/// By name; one in the path before one in the query.
fn sort(parameters: &mut [Parameter]) {
    parameters.sort_by_key(|parameter| (parameter.name, !parameter.in_path));
}
