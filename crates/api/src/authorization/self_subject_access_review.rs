//! Self subject access reviews: the access of the caller.

use super::{
    access_review::{answer, refuse, validate_metadata, validate_spec},
    group::GROUP,
};
use crate::declare::Declare;
use pintle_machinery::{ErrorList, Status, Value};
use pintle_registry::{Backing, BoxFuture, NamedCreater, RequestContext, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource =
        GROUP.cluster("SelfSubjectAccessReview", "selfsubjectaccessreviews").verbs([Verb::Create]);
    resource.backing = Backing::Creater(Arc::new(SelfSubjectAccessReviewCreater));
    resource
}

#[derive(Debug, Clone, Copy)]
struct SelfSubjectAccessReviewCreater;

impl NamedCreater for SelfSubjectAccessReviewCreater {
    fn prepare<'a>(
        &'a self,
        _: &'a RequestContext<'a>,
        review: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(refuse(&validate(review))))
    }

    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        review: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move { Ok(answer(context.authorizer, context.user, review).await) })
    }
}

fn validate(review: &Value) -> ErrorList {
    let mut errors = validate_spec(review, false);
    errors.extend(validate_metadata(review, false));
    errors
}
