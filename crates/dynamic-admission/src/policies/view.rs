//! A request as the expressions of policies see it.

use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_admission_cel::{Input, RequestAttributes, request_resource};
use pintle_cel::{Authority, ResourceCheck};
use pintle_machinery::{
    GroupResource, GroupVersionKind, Status, Value, ValueExt,
    codec::json::{open_managed_fields, with_written_fields},
};
use pintle_schema::{Schema, SchemaRef};
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// The objects of a request in the version that a policy matches, and the variables beside them.
pub(super) struct View<'a> {
    kind: GroupVersionKind,
    resource: &'a Endpoint,
    object: Option<Cow<'a, Value>>,
    /// The objects as expressions see them.
    shown: Option<Cow<'a, Value>>,
    shown_old: Option<Cow<'a, Value>>,
    /// The same objects with the sets of `managedFields` read.
    opened: OnceLock<(Option<Value>, Option<Value>)>,
    request: Value,
    condition_request: Option<Value>,
    check: ResourceCheck,
}

impl<'a> View<'a> {
    /// Converts the objects to the kind of the matched endpoint.
    ///
    /// # Errors
    /// The error of a conversion that fails, and those of [`with_written_fields`].
    pub(super) async fn new(
        request: &'a AdmissionRequest<'_>,
        requested: &Endpoint,
        matched: &'a Endpoint,
    ) -> Result<View<'a>, Status> {
        let options = request.options.to_object(request.operation);
        let attributes = RequestAttributes {
            operation: request.operation.as_str(),
            kind: &matched.kind,
            resource: &matched.resource,
            request_kind: &requested.kind,
            request_resource: &requested.resource,
            subresource: request.subresource,
            namespace: request.namespace,
            name: request.name,
            user: request.context.user,
            dry_run: request.context.dry_run,
            options: &options,
        };
        // Match conditions see the resource of the request, and the kind that the rules match.
        let condition_request = (matched.resource != requested.resource)
            .then(|| RequestAttributes { resource: &requested.resource, ..attributes }.to_value());
        let object = convert(Some(&*request.object), request, &matched.kind).await?;
        let old_object = convert(request.old_object, request, &matched.kind).await?;
        let schema = request.versions.schema(&matched.kind);
        Ok(View {
            condition_request,
            kind: matched.kind.clone(),
            resource: matched,
            shown: object.clone().map(|object| written(object, schema)).transpose()?,
            shown_old: old_object.map(|object| written(object, schema)).transpose()?,
            object,
            opened: OnceLock::new(),
            request: attributes.to_value(),
            check: request_resource(&attributes),
        })
    }

    /// Whether this is the view for this endpoint.
    pub(super) fn is_of(&self, matched: &Endpoint) -> bool {
        self.kind == matched.kind && self.resource.resource == matched.resource
    }

    /// The object; `None` if the request has none.
    pub(super) fn object(&self) -> Option<&Value> {
        self.object.as_deref()
    }

    fn objects(&self, reads_fields: bool) -> (Option<&Value>, Option<&Value>) {
        if !reads_fields {
            return (self.shown.as_deref(), self.shown_old.as_deref());
        }
        let open = |object: Option<&Value>| {
            let mut object = object?.clone();
            object.get_mut("metadata").map(open_managed_fields);
            Some(object)
        };
        let opened = || (open(self.shown.as_deref()), open(self.shown_old.as_deref()));
        let (object, old_object) = self.opened.get_or_init(opened);
        (object.as_ref(), old_object.as_ref())
    }

    /// The input of expressions, which read the fields of managers or do not.
    pub(super) fn input<'p>(
        &'p self,
        reads_fields: bool,
        params: Option<&'p Value>,
        namespace: Option<&'p Value>,
        authority: Option<Arc<dyn Authority>>,
    ) -> Input<'p> {
        let (object, old_object) = self.objects(reads_fields);
        Input {
            object,
            old_object,
            request: Some(&self.request),
            condition_request: self.condition_request.as_ref(),
            params,
            namespace,
            authorizer: authority.map(|authority| (authority, self.check.clone())),
        }
    }
}

/// An object with the fields that its type always has.
fn written<'a>(object: Cow<'a, Value>, schema: Option<SchemaRef<'_>>) -> Result<Cow<'a, Value>, Status> {
    let Some(schema) = schema else { return Ok(object) };
    match object {
        Cow::Borrowed(object) => with_written_fields(object, schema),
        Cow::Owned(object) => match with_written_fields(&object, schema)? {
            Cow::Owned(written) => Ok(Cow::Owned(written)),
            Cow::Borrowed(_) => Ok(Cow::Owned(object)),
        },
    }
}

async fn convert<'a>(
    object: Option<&'a Value>,
    request: &AdmissionRequest<'_>,
    kind: &GroupVersionKind,
) -> Result<Option<Cow<'a, Value>>, Status> {
    let Some(object) = object.filter(|object| !object.is_null()) else { return Ok(None) };
    // The server works with most objects in the version of the request.
    let is_of_kind =
        object.str_at("kind") == kind.kind && object.str_at("apiVersion") == kind.group_version().to_string();
    Ok(Some(match is_of_kind {
        true => Cow::Borrowed(object),
        false => Cow::Owned(request.versions.to_version(object, kind).await?.into_owned()),
    }))
}

/// The namespace of a request as expressions see it; `None` for cluster-scoped objects and for namespaces.
///
/// # Errors
/// When the namespace does not exist or cannot be read.
pub(super) async fn namespace_object(request: &AdmissionRequest<'_>) -> Result<Option<Value>, Status> {
    let kind = request.kind;
    let is_namespace = kind.group.is_empty() && kind.version == "v1" && kind.kind == "Namespace";
    if is_namespace || request.namespace.is_empty() {
        return Ok(None);
    }
    let namespace = request.get(&GroupResource::new("", "namespaces"), "", request.namespace).await?;
    let mut namespace = match Schema::builtin().by_kind("", "v1", "Namespace") {
        Some(schema) => with_written_fields(&namespace, schema)?.into_owned(),
        None => Value::clone(&namespace),
    };
    for field in ["managedFields", "ownerReferences", "selfLink"] {
        namespace.remove_at(&format!("metadata.{field}"));
    }
    Ok(Some(namespace))
}
