//! Subject access reviews: the access of a user.

use super::{
    access_review::{answer, refuse, user_of, validate_metadata, validate_spec},
    group::GROUP,
};
use crate::declare::Declare;
use pintle_machinery::{ErrorList, Status, Value};
use pintle_registry::{Backing, BoxFuture, NamedCreater, RequestContext, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource = GROUP.cluster("SubjectAccessReview", "subjectaccessreviews").verbs([Verb::Create]);
    resource.backing = Backing::Creater(Arc::new(SubjectAccessReviewCreater));
    resource
}

#[derive(Debug, Clone, Copy)]
struct SubjectAccessReviewCreater;

impl NamedCreater for SubjectAccessReviewCreater {
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
        Box::pin(async move { Ok(answer(context.authorizer, &user_of(&review), review).await) })
    }
}

fn validate(review: &Value) -> ErrorList {
    let mut errors = validate_spec(review, true);
    errors.extend(validate_metadata(review, false));
    errors
}
