//! The selectors of namespaces and objects.

use pintle_admission::{AdmissionRequest, Operation};
use pintle_machinery::{
    GroupResource, Status, StatusReason, Value, ValueExt,
    selectors::{LabelSelector, SelectorError},
};

/// A namespace selector and an object selector.
#[derive(Debug, Clone)]
pub struct Selectors {
    namespaces: GroupResource,
    namespace: Result<LabelSelector, SelectorError>,
    object: Result<LabelSelector, SelectorError>,
}

impl Selectors {
    /// Reads `namespaceSelector` and `objectSelector`. Absent selectors select nothing; defaulting has made them empty,
    /// so that they select everything.
    pub fn new(configuration: &Value) -> Selectors {
        Selectors {
            namespaces: GroupResource::new("", "namespaces"),
            namespace: LabelSelector::from_object(configuration.at("namespaceSelector")),
            object: LabelSelector::from_object(configuration.at("objectSelector")),
        }
    }

    /// Whether both selectors select the request. The namespace is read only if its selector requires labels.
    ///
    /// # Errors
    /// 404 when the namespace does not exist, 500 when it cannot be read or when a selector is malformed; not if the
    /// other selector excludes the request.
    pub async fn select(&self, request: &AdmissionRequest<'_>) -> Result<bool, Status> {
        // The object first: its labels are at hand.
        let object = self.selects_object(request);
        if matches!(object, Ok(false)) {
            return Ok(false);
        }
        match self.selects_namespace(request).await {
            Ok(false) => Ok(false),
            Ok(true) => object,
            Err(status) => Err(status),
        }
    }

    /// Whether the labels of the old or of the new object are selected.
    fn selects_object(&self, request: &AdmissionRequest<'_>) -> Result<bool, Status> {
        let selector = self.object.as_ref().map_err(|error| Status::internal_error(&error.0))?;
        if selector.is_empty() {
            return Ok(true);
        }
        // The options of a connection have no metadata.
        let has_labels = request.operation != Operation::Connect;
        let matches = |object: &Value| {
            has_labels && !object.is_null() && selector.matches_labels(object.at("metadata.labels"))
        };
        Ok(matches(&request.object) || request.old_object.is_some_and(matches))
    }

    async fn selects_namespace(&self, request: &AdmissionRequest<'_>) -> Result<bool, Status> {
        let is_namespace = request.resource.resource == "namespaces";
        if request.namespace.is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = self.namespace.as_ref().map_err(|error| Status::internal_error(&error.0))?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_written = matches!(request.operation, Operation::Create | Operation::Update);
        if is_namespace && request.subresource.is_empty() && is_written {
            // The cache has the namespace of before, if any.
            return Ok(selector.matches_labels(request.object.at("metadata.labels")));
        }
        match request.get(&self.namespaces, "", request.namespace).await {
            Ok(namespace) => Ok(selector.matches_labels(namespace.at("metadata.labels"))),
            Err(status) if status.reason == StatusReason::NotFound => Err(status),
            Err(status) => Err(Status::internal_error(status)),
        }
    }
}
