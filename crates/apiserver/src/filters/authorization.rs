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
use pintle_audit::Layer;
use pintle_auth::authz::{Attributes, Authorizer, Selectors, Verdict, without_markup};
use pintle_go_forms::quote;
use pintle_machinery::{Status, UserInfo};
use std::{sync::Arc, time::Instant};

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
        let took = start.elapsed();
        self.metrics.authorized(&verdict, took);
        audit::note_verdict(&request, &verdict);
        audit::note_latency(&request, Layer::Authorization, took);
        if verdict.is_allowed() {
            self.metrics.filters().authorization.passed(took);
            return next.call(request).await;
        }
        let mut response = match verdict.error.is_empty() {
            true => {
                let status = attributes.forbidden(&verdict.reason);
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
pub(crate) fn attributes_of<'a>(user: &'a UserInfo, verb: &'a str, info: &'a RequestInfo) -> Attributes<'a> {
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
        Verdict { reason, .. } => Err(attributes.forbidden(&reason)),
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
}
