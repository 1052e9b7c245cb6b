//! Self subject reviews: the caller's identity after authentication and impersonation.

use super::group::GROUP;
use crate::declare::Declare;
use pintle_machinery::{Status, UserInfo, Value, ValueExt, json, meta};
use pintle_registry::{Backing, BoxFuture, NamedCreater, RequestContext, Resource, Verb};
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource() -> Resource {
    let mut resource = GROUP.cluster("SelfSubjectReview", "selfsubjectreviews").verbs([Verb::Create]);
    resource.backing = Backing::Creater(Arc::new(SelfSubjectReviewCreater));
    resource
}

/// Answers with the caller. The content of the request is ignored.
#[derive(Debug, Clone, Copy)]
struct SelfSubjectReviewCreater;

impl NamedCreater for SelfSubjectReviewCreater {
    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        _body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let review = json!({
            "apiVersion": context.group_version.to_string(),
            "kind": "SelfSubjectReview",
            "metadata": {"creationTimestamp": meta::format_time(context.now)},
            "status": {"userInfo": user_info(context.user)},
        });
        Box::pin(std::future::ready(Ok(review)))
    }
}

/// Converts the user, without empty fields.
pub(super) fn user_info(user: &UserInfo) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info.set("uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        info.set("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.set("extra", json!(user.extra));
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_of_the_user_is_told() {
        let mut user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
        assert_eq!(user_info(&user), json!({"username": "jane"}));
        user.groups = vec!["devs".to_owned()];
        user.extra.insert("example.com/foo".to_owned(), vec!["Bar Baz".to_owned()]);
        let expected =
            json!({"username": "jane", "groups": ["devs"], "extra": {"example.com/foo": ["Bar Baz"]}});
        assert_eq!(user_info(&user), expected);
    }
}
