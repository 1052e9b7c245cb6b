//! Finds out whether they may.

use super::{Filter, Next, audit, request_info::info_of};
use crate::{
    request::Request,
    request_info::RequestInfo,
    response::{Response, json_failure},
};
use pintle_auth::authz::{Attributes, Authorizer};
use pintle_machinery::{Status, UserInfo};
use std::sync::Arc;

pub(super) struct Authorization {
    pub(super) authorizer: Arc<dyn Authorizer>,
}

impl Filter for Authorization {
    async fn handle(self: Arc<Self>, request: Request, next: impl Next) -> Response {
        let info = info_of(&request);
        let user = user_of(&request);
        let path = request.uri().path();
        let verdict = self.authorizer.authorize(&attributes(&user, &info.verb, &info, path)).await;
        audit::note_verdict(&request, &verdict);
        match verdict.is_allowed() {
            true => next.call(request).await,
            false => json_failure(&refusal(&user, &info.verb, &info, path)),
        }
    }
}

/// Asks whether a user may do something to what a request is about.
///
/// # Errors
/// 403 when they may not.
pub(crate) async fn authorize(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    verb: &str,
    info: &RequestInfo,
    path: &str,
) -> Result<(), Status> {
    match authorizer.authorize(&attributes(user, verb, info, path)).await.is_allowed() {
        true => Ok(()),
        false => Err(refusal(user, verb, info, path)),
    }
}

fn attributes<'a>(user: &'a UserInfo, verb: &'a str, info: &'a RequestInfo, path: &'a str) -> Attributes<'a> {
    Attributes {
        user,
        verb,
        group: &info.api_group,
        version: &info.api_version,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
        name: &info.name,
        path,
        is_resource_request: info.is_resource_request,
    }
}

/// The user that authentication left on a request.
pub(crate) fn user_of(request: &Request) -> Arc<UserInfo> {
    request.extensions().get().cloned().unwrap_or_default()
}

fn refusal(user: &UserInfo, verb: &str, info: &RequestInfo, path: &str) -> Status {
    if !info.is_resource_request {
        let why = format!("User \"{}\" cannot {verb} path \"{path}\"", user.name);
        return Status::forbidden(&Default::default(), "", &why);
    }
    let mut resource = info.resource.clone();
    if !info.subresource.is_empty() {
        resource = format!("{resource}/{}", info.subresource);
    }
    let place =
        match info.namespace.is_empty() || info.resource == "namespaces" && info.name == info.namespace {
            true if info.namespace.is_empty() => "at the cluster scope".to_owned(),
            _ => format!("in the namespace \"{}\"", info.namespace),
        };
    let why = format!(
        "User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {place}",
        user.name, info.api_group
    );
    Status::forbidden(&info.group_resource(), &info.name, &why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::{
        BoxFuture,
        authz::{Decision, Verdict},
    };
    use std::future::ready;

    /// Lets everybody do what a list of verbs says.
    struct Verbs(&'static [&'static str]);

    impl Authorizer for Verbs {
        fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
            let has = self.0.contains(&attributes.verb);
            Box::pin(ready(Verdict::new(if has { Decision::Allow } else { Decision::NoOpinion })))
        }
    }

    #[tokio::test]
    async fn who_may_patch_may_not_create_by_it() {
        let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
        let info = RequestInfo {
            is_resource_request: true,
            verb: "patch".to_owned(),
            resource: "configmaps".to_owned(),
            namespace: "default".to_owned(),
            name: "a".to_owned(),
            ..RequestInfo::default()
        };
        assert!(authorize(&Verbs(&["patch", "create"]), &user, "create", &info, "").await.is_ok());
        let refusal = authorize(&Verbs(&["patch"]), &user, "create", &info, "").await.unwrap_err();
        let text = "configmaps \"a\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the \
                    namespace \"default\"";
        assert_eq!((refusal.code, refusal.message.as_str()), (403, text));
    }
}
