//! The form of responses with a scale.

use super::{
    super::{
        encoder::{Encoder, IncludeObject},
        request_scope::RequestScope,
    },
    view::scale_schema,
};
use crate::{
    base::{
        body::Body,
        encoding::encode,
        negotiation::{Accepted, Offers},
        response::{Response, with_content_type},
    },
    registry::{TypeSchema, VersionedResource},
};
use pintle_machinery::{Status, Value};
use pintle_registry::{Resource, ScalePaths, SubresourceKind};
use std::sync::Arc;

/// The form of the response, negotiated before the write.
pub(super) struct Answer<'a> {
    accepted: Accepted,
    include_object: IncludeObject,
    /// The paths of the fields that the scale shows.
    pub(super) paths: &'a ScalePaths,
}

impl<'a> Answer<'a> {
    /// Negotiates the response of a request for a scale.
    ///
    /// # Errors
    /// 404 for another subresource, 406 when the server offers nothing that the client accepts.
    pub(super) fn new(scope: &RequestScope<'a>) -> Result<Answer<'a>, Status> {
        let paths = paths(scope)?;
        let (accepted, include_object) = scope.form(Offers::Scale)?;
        Ok(Answer { accepted, include_object, paths })
    }

    /// The response with a scale.
    ///
    /// # Errors
    /// 500 when the scale does not fit its schema.
    pub(super) fn respond(&self, scope: &RequestScope<'_>, scale: &Value) -> Result<Response, Status> {
        let content_type = self.accepted.media_type.as_str();
        let bytes = match self.accepted.transform {
            Some(_) => {
                // A table belongs to a resource: the scale gets one with its own schema and columns.
                let mut resource = Resource::clone(&scope.resource.resource);
                resource.table = self.paths.table.clone();
                resource.converter = None;
                resource.conversion = None;
                resource.integer_annotations = &[];
                let scale_resource = VersionedResource {
                    resource: Arc::new(resource),
                    schema: TypeSchema::Builtin(scale_schema()?),
                    slot: 0,
                    store: None,
                    series: Default::default(),
                };
                let encoder = Encoder {
                    resource: &scale_resource,
                    accepted: self.accepted.clone(),
                    include_object: self.include_object,
                    now: scope.now,
                };
                encoder.stored_answer(scale.clone())?
            }
            None => encode(scale, scale_schema()?, &self.accepted)?,
        };
        Ok(with_content_type(200, content_type, Body::from(bytes)))
    }
}

/// The paths of the subresource of a request.
fn paths<'a>(scope: &RequestScope<'a>) -> Result<&'a ScalePaths, Status> {
    match scope.resource.resource.subresource(&scope.info.subresource).map(|found| &found.kind) {
        Some(SubresourceKind::Scale(paths)) => Ok(paths),
        _ => Err(Status::no_such_resource()),
    }
}
