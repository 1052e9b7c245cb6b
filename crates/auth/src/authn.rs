//! Who a request comes from.

use crate::BoxFuture;
use http::HeaderMap;
use pintle_machinery::UserInfo;
use rustls_pki_types::CertificateDer;
use std::sync::Arc;

/// What a request proves its sender with.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The client's certificates as the client sent them, leaf first.
    pub certificates: &'a [CertificateDer<'static>],
    /// The token of an `Authorization: Bearer` header, or of a web socket's protocol.
    pub bearer_token: Option<&'a str>,
    /// All headers of the request: a front proxy tells the user there.
    pub headers: &'a HeaderMap,
    /// The path of the request: the anonymous user may be let in at some only.
    pub path: &'a str,
}

/// Somebody who has proved who they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authenticated {
    /// Who it is.
    pub user: Arc<UserInfo>,
    /// The audiences that the proof is for, of those that were asked for; empty when it is for no audience in particular.
    pub audiences: Vec<String>,
}

/// Credentials that were given and are wrong. The text says why, for the log, and never holds what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCredentials(pub String);

/// What an authenticator finds: somebody, nothing that it judges, or something wrong.
pub type Authentication = Result<Option<Authenticated>, InvalidCredentials>;

/// Tells who a request comes from.
pub trait Authenticator: Send + Sync {
    /// Judges credentials.
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, Authentication>;
}

/// Tells whose a bearer token is.
pub trait TokenAuthenticator: Send + Sync {
    /// Judges a token that is shown to one of `audiences`; none given are the server's own.
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication>;
}
