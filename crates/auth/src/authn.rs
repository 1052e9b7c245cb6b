//! Who a request comes from.

use pintle_machinery::UserInfo;
use rustls_pki_types::CertificateDer;
use std::sync::Arc;

/// What a request proves its sender with.
pub struct Credentials<'a> {
    /// The client's certificates, verified by the TLS layer, leaf first.
    pub certificates: &'a [CertificateDer<'static>],
    /// The token of an `Authorization: Bearer` header.
    pub bearer_token: Option<&'a str>,
}

/// What the credentials say.
pub enum Authentication {
    /// Who it is; the anonymous user when there were no credentials.
    User(Arc<UserInfo>),
    /// Credentials were given and are wrong.
    Invalid,
}

/// Tells who a request comes from.
pub trait Authenticator: Send + Sync {
    /// Judges credentials.
    fn authenticate(&self, credentials: &Credentials<'_>) -> Authentication;
}
