//! Finds out who asks.

use super::{Filter, Next, audit};
use crate::{
    request::Request,
    response::{Response, json_failure},
};
use http::header;
use pintle_audit::Auditor;
use pintle_auth::authn::{Authenticator, Credentials};
use pintle_machinery::Status;
use rustls_pki_types::CertificateDer;
use std::sync::Arc;

pub(super) struct Authentication {
    pub(super) authenticator: Arc<dyn Authenticator>,
    /// Is told of requests that get no further.
    pub(super) auditor: Option<Arc<Auditor>>,
}

/// The verified certificates of a connection's client, leaf first; on every request of the connection.
#[derive(Clone)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

impl Filter for Authentication {
    async fn handle(self: Arc<Self>, mut request: Request, next: impl Next) -> Response {
        let certificates = request.extensions().get::<PeerCertificates>().cloned();
        let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|header| {
            let (scheme, token) = header.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
        });
        let credentials = Credentials {
            certificates: certificates.as_ref().map(|certificates| &*certificates.0).unwrap_or_default(),
            bearer_token: bearer,
            headers: request.headers(),
            path: request.uri().path(),
        };
        let found = self.authenticator.authenticate(&credentials).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "a request with wrong credentials");
            None
        });
        let Some(user) = found.map(|authenticated| authenticated.user) else {
            let refuse = || json_failure(&Status::unauthorized());
            return audit::refused(self.auditor.as_ref(), &request, refuse).await;
        };
        // Nobody behind this filter needs the credentials, and what is not there cannot be leaked.
        request.headers_mut().remove(header::AUTHORIZATION);
        request.extensions_mut().insert(user);
        next.call(request).await
    }
}
