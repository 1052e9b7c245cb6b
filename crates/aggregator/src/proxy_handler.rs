//! Answers the requests of API services by the servers behind them.

use crate::{
    OpenApiManager,
    api_services::{ApiService, ApiServices},
    remote_user,
};
use http::StatusCode;
use pintle_apiserver::{
    base::{handler::Handler, request::Request, request_info::RequestInfo, response::Response},
    proxying::{self, Failure, Origin, Proxying, Target},
    server::RemoteGroups,
};
use pintle_machinery::UserInfo;
use std::{borrow::Cow, sync::Arc, time::Duration};

/// The time limit of a discovery document: clients wait for those of all groups.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// The aggregator's handler: requests of an API service that has a service go to the server behind it, and those for its
/// OpenAPI 3 documents.
pub struct ProxyHandler {
    /// The registered API services.
    pub api_services: Arc<ApiServices>,
    /// The OpenAPI documents of backends.
    pub open_api: Arc<OpenApiManager>,
    /// Whether redirects of backends are refused (`--aggregator-reject-forwarding-redirect`).
    pub rejects_redirects: bool,
}

impl RemoteGroups for ProxyHandler {
    fn handler(&self, path: &str) -> Option<Handler> {
        let name = match path.strip_prefix("/openapi/v3/") {
            Some(key) => Cow::Owned(self.open_api.owner(key)?.to_string()),
            None => api_service_of(path)?,
        };
        let service = self.api_services.get(&name).filter(|service| service.backend.is_some())?;
        let rejects_redirects = self.rejects_redirects;
        Some(Handler::new(move |request| answer(service.clone(), rejects_redirects, request)))
    }
}

/// The API service of the core group, which has a path of its own.
const CORE: &str = "v1.";

/// The name of the API service that a path belongs to, if it is at or below `/api` or `/apis/GROUP/VERSION`.
fn api_service_of(path: &str) -> Option<Cow<'static, str>> {
    let rest = path.strip_prefix("/api")?;
    if rest.is_empty() || rest.starts_with('/') {
        return Some(Cow::Borrowed(CORE));
    }
    let rest = rest.strip_prefix("s/")?;
    let mut segments = rest.split('/');
    let (group, version) = (segments.next()?, segments.next()?);
    (!group.is_empty() && !version.is_empty()).then(|| Cow::Owned(format!("{version}.{group}")))
}

async fn answer(service: Arc<ApiService>, rejects_redirects: bool, request: Request) -> Response {
    let Some(backend) = service.backend.as_ref().filter(|_| service.is_available) else {
        return proxying::unavailable("service unavailable");
    };
    let client = match backend.client() {
        Ok(client) => client,
        Err(error) => return proxying::failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    };
    let Some(user) = request.extensions().get::<Arc<UserInfo>>().cloned() else {
        return proxying::failure(StatusCode::INTERNAL_SERVER_ERROR, "missing user");
    };
    let target = match backend.locate().await.map(|address| Target::of(request.uri(), &address)) {
        Ok(Ok(target)) => target,
        Ok(Err(error)) => {
            tracing::warn!(name = %service.name, %error, "the address of an API service is unusable");
            return proxying::unavailable("service unavailable");
        }
        Err(error) => {
            tracing::warn!(name = %service.name, error, "an API service cannot be resolved");
            return proxying::unavailable("service unavailable");
        }
    };
    let limit = is_discovery(&request).then_some(DISCOVERY_TIMEOUT);
    let proxying =
        Proxying { client, target, origin: Origin::Backend, rejects_redirects, limit, carry: None };
    let answer = proxying.answer(request, |headers| remote_user::set(headers, &user)).await;
    // As in the reference, metrics do not count it as an early end: the request has reached the proxy.
    answer.unwrap_or_else(|failure: Failure| {
        proxying::failure(StatusCode::SERVICE_UNAVAILABLE, &failure.to_string())
    })
}

/// Whether a request is for the list of a version's resources.
fn is_discovery(request: &Request) -> bool {
    let is_resource_request =
        request.extensions().get::<Arc<RequestInfo>>().is_some_and(|info| info.is_resource_request);
    !is_resource_request && request.uri().path().trim_matches('/').split('/').count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_api_services() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(api_service_of(path).as_deref(), expected, "{path}");
        };
        check("/apis/a.example.com/v1", Some("v1.a.example.com"));
        check("/apis/a.example.com/v1/", Some("v1.a.example.com"));
        check("/apis/a.example.com/v1/namespaces/x/../y", Some("v1.a.example.com"));
        check("/apis/a.example.com", None);
        check("/apis/a.example.com/", None);
        check("/apis//v1", None);
        check("/api/v1", Some("v1."));
        check("/api", Some("v1."));
        check("/apiary", None);
        check("/apis", None);
    }
}
