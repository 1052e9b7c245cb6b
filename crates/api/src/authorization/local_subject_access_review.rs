//! Local subject access reviews: the access of a user in a namespace.

use super::{
    access_review::{answer, invalid_non_resource, refuse, user_of, validate_metadata, validate_spec},
    group::GROUP,
};
use crate::declare::Declare;
use pintle_machinery::{ErrorList, FieldError, FieldPath, Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{Backing, BoxFuture, NamedCreater, RequestContext, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource =
        GROUP.namespaced("LocalSubjectAccessReview", "localsubjectaccessreviews").verbs([Verb::Create]);
    resource.backing = Backing::Creater(Arc::new(LocalSubjectAccessReviewCreater));
    resource
}

#[derive(Debug, Clone, Copy)]
struct LocalSubjectAccessReviewCreater;

impl NamedCreater for LocalSubjectAccessReviewCreater {
    fn prepare<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        review: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(refuse(&validate(review)).and_then(|()| match context.namespace {
            "" => Err(Status::bad_request("namespace is required on this type: ")),
            _ => Ok(()),
        })))
    }

    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        review: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move { Ok(answer(context.authorizer, &user_of(&review), review).await) })
    }
}

/// Requires that the action is in the namespace of the review.
fn validate(review: &Value) -> ErrorList {
    let mut errors = validate_spec(review, true);
    errors.extend(validate_metadata(review, true));
    let asked = review.at("spec.resourceAttributes").filter(|value| !value.is_null());
    if let Some(namespace) = asked.map(|asked| asked.str_at("namespace"))
        && namespace != review.namespace()
    {
        let path = FieldPath::new("spec").child("resourceAttributes").child("namespace");
        errors.push(FieldError::invalid(&path, namespace, "must match metadata.namespace"));
    }
    if let Some(asked) = review.at("spec.nonResourceAttributes").filter(|value| !value.is_null()) {
        errors.push(invalid_non_resource(asked, "disallowed on this kind of request"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::validate;
    use pintle_machinery::{Value, json};

    #[test]
    fn it_is_about_its_namespace() {
        let check = |spec: Value, expected: &[&str]| {
            let errors = validate(&json!({"metadata": {"namespace": "shop"}, "spec": spec}));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(json!({"user": "u", "resourceAttributes": {"namespace": "shop"}}), &[]);
        check(
            json!({"user": "u", "resourceAttributes": {}}),
            &[r#"spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace"#],
        );
        check(
            json!({"user": "u", "nonResourceAttributes": {"path": "/x", "verb": "get"}}),
            &[
                r#"spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request"#,
            ],
        );
    }
}
