//! Subject access reviews: the access of a user.

use super::{
    access_review::{answer, refuse, user_of, validate_metadata, validate_spec},
    group::GROUP,
};
use crate::declare::Declare;
use pintle_machinery::{Status, Value};
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
    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        review: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let mut errors = validate_spec(&review, true);
            errors.extend(validate_metadata(&review, false));
            refuse(&errors)?;
            Ok(answer(context.authorizer, &user_of(&review), review).await)
        })
    }
}
