//! Authorizes the request.

use super::{
    audit,
    filter::{Filter, Rest},
};
use crate::{
    base::{
        query::Query,
        request::{Request, info_of, query_of, user_of},
        request_info::RequestInfo,
        response::{Response, negotiated_failure, text},
    },
    metrics::Metrics,
};
use http::{HeaderValue, header};
use pintle_auth::authz::{Attributes, Authorizer, Selectors, Verdict};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, UserInfo};
use std::{borrow::Cow, sync::Arc, time::Instant};

pub(super) struct Authorization {
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) metrics: Arc<Metrics>,
}

impl Filter for Authorization {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let info = info_of(&request);
        let user = user_of(&request);
        let query = query_of(&request);
        let selectors = selectors(&info, &query);
        let attributes =
            Attributes { selectors: selectors.as_ref(), ..attributes_of(&user, &info.verb, &info) };
        let start = Instant::now();
        let verdict = self.authorizer.authorize(&attributes).await;
        self.metrics.authorized(&verdict, start.elapsed());
        audit::note_verdict(&request, &verdict);
        if verdict.is_allowed() {
            return next.call(request).await;
        }
        let mut response = match verdict.error.is_empty() {
            true => {
                let status = forbidden(&attributes, &verdict.reason);
                negotiated_failure(&status, request.headers(), query.first("pretty"))
            }
            false => {
                tracing::error!(error = %verdict.error, "a request could not be authorized");
                let uri = quote(request.uri().path_and_query().map_or("/", |uri| uri.as_str()));
                let message = format!("Internal Server Error: {uri}: {}", verdict.error);
                text(500, format!("{}\n", without_markup(&message)))
            }
        };
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// The authorization attributes of a request.
pub(super) fn attributes_of<'a>(user: &'a UserInfo, verb: &'a str, info: &'a RequestInfo) -> Attributes<'a> {
    Attributes {
        group: &info.api_group,
        version: &info.api_version,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
        name: &info.name,
        path: &info.path,
        is_resource_request: info.is_resource_request,
        ..Attributes::of(user, verb)
    }
}

/// The selectors of a list, watch or deletecollection request.
pub(super) fn selectors(info: &RequestInfo, query: &Query) -> Option<Selectors> {
    if !info.is_resource_request || !matches!(&*info.verb, "list" | "watch" | "deletecollection") {
        return None;
    }
    let [fields, labels] =
        ["fieldSelector", "labelSelector"].map(|name| query.first(name).unwrap_or_default());
    (!fields.is_empty() || !labels.is_empty()).then(|| Selectors::parse(fields, labels))
}

/// Checks whether `user` may use `verb` on the object of the request.
///
/// # Errors
/// 403 when the authorizer does not allow it, 500 when the authorizer failed.
pub(crate) async fn authorize(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    verb: &str,
    info: &RequestInfo,
) -> Result<(), Status> {
    let attributes = attributes_of(user, verb, info);
    match authorizer.authorize(&attributes).await {
        verdict if verdict.is_allowed() => Ok(()),
        Verdict { error, .. } if !error.is_empty() => Err(Status::internal_error(error)),
        Verdict { reason, .. } => Err(forbidden(&attributes, &reason)),
    }
}

/// The 403 of a denied request, with the authorizers' reasons if there are any.
pub(super) fn forbidden(attributes: &Attributes<'_>, reason: &str) -> Status {
    let (user, verb) = (quote(&attributes.user.name), attributes.verb);
    if !attributes.is_resource_request {
        let why = format!("User {user} cannot {verb} path {}", quote(attributes.path));
        return Status::forbidden(&GroupResource::default(), attributes.name, &with_reason(&why, reason));
    }
    let resource = match attributes.subresource {
        "" => quote(attributes.resource),
        subresource => quote(&format!("{}/{subresource}", attributes.resource)),
    };
    let place = match attributes.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", quote(namespace)),
    };
    let group = quote(attributes.group);
    let why = format!("User {user} cannot {verb} resource {resource} in API group {group} {place}");
    let resource = GroupResource::new(attributes.group, attributes.resource);
    Status::forbidden(&resource, attributes.name, &with_reason(&why, reason))
}

fn with_reason(why: &str, reason: &str) -> String {
    let why = without_markup(why);
    match reason {
        "" => why.into_owned(),
        reason => format!("{why}: {reason}"),
    }
}

/// Escapes HTML markup: names come from the client.
fn without_markup(text: &str) -> Cow<'_, str> {
    match text.contains(['&', '<', '>']) {
        true => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::{
        BoxFuture,
        authz::{Decision, Verdict},
    };
    use std::future::ready;

    /// Allows every user the listed verbs.
    struct Verbs(&'static [&'static str]);

    impl Authorizer for Verbs {
        fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
            let has = self.0.contains(&attributes.verb);
            Box::pin(ready(Verdict::new(if has { Decision::Allow } else { Decision::NoOpinion })))
        }
    }

    #[tokio::test]
    async fn the_permission_to_patch_does_not_include_creates() {
        let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
        let info = RequestInfo {
            is_resource_request: true,
            verb: "patch".to_owned(),
            resource: "configmaps".to_owned(),
            namespace: "default".to_owned(),
            name: "a".to_owned(),
            ..RequestInfo::default()
        };
        assert!(authorize(&Verbs(&["patch", "create"]), &user, "create", &info).await.is_ok());
        let refusal = authorize(&Verbs(&["patch"]), &user, "create", &info).await.unwrap_err();
        let text = "configmaps \"a\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the \
                    namespace \"default\"";
        assert_eq!((refusal.code, refusal.message.as_str()), (403, text));
    }

    #[test]
    fn refusals_have_the_messages_of_kubernetes() {
        let user = UserInfo { name: "we\"i<rd".to_owned(), ..UserInfo::default() };
        let resource = Attributes { group: "apps", resource: "deployments", ..Attributes::of(&user, "get") };
        let check = |attributes: Attributes<'_>, reason: &str, message: &str| {
            assert_eq!(forbidden(&attributes, reason).message, message);
        };
        check(
            Attributes { namespace: "shop", name: "web", subresource: "scale", ..resource },
            "",
            "deployments.apps \"web\" is forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"deployments/scale\" in API group \
             \"apps\" in the namespace \"shop\"",
        );
        check(
            resource,
            "RBAC: a <b>",
            "deployments.apps is forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"deployments\" in API group \"apps\" at \
             the cluster scope: RBAC: a <b>",
        );
        check(
            Attributes { path: "/metrics", is_resource_request: false, ..Attributes::of(&user, "get") },
            "",
            "forbidden: User \"we\\\"i&lt;rd\" cannot get path \"/metrics\"",
        );
    }
}
