//! The traits and types of authentication.

use crate::BoxFuture;
use http::HeaderMap;
use pintle_machinery::UserInfo;
use rustls_pki_types::CertificateDer;
use std::sync::Arc;

/// The credentials of a request.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The client's certificate chain as it was sent, leaf first.
    pub certificates: &'a [CertificateDer<'static>],
    /// The token of an `Authorization: Bearer` header, or of a web socket's subprotocol.
    pub bearer_token: Option<&'a str>,
    /// All headers of the request: a front proxy sends the user in headers.
    pub headers: &'a HeaderMap,
    /// The path of the request: anonymous requests may be accepted at some paths only.
    pub path: &'a str,
}

/// The result of a successful authentication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authenticated {
    /// The authenticated user.
    pub user: Arc<UserInfo>,
    /// The requested audiences that the credentials are valid for; empty when they have no audience.
    pub audiences: Vec<String>,
    /// Remarks about the credentials; `None` for most of them.
    pub remarks: Option<Arc<Remarks>>,
}

/// Remarks of an authenticator about credentials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remarks {
    /// Annotations of the audit event.
    pub annotations: Vec<(&'static str, String)>,
    /// Warnings to the client.
    pub warnings: Vec<&'static str>,
}

impl Remarks {
    /// The remarks for their readers; `None` if there are none.
    pub fn shared(self) -> Option<Arc<Remarks>> {
        (self != Remarks::default()).then(|| Arc::new(self))
    }

    fn add(&mut self, other: &Remarks) {
        self.annotations.extend(other.annotations.iter().cloned());
        self.warnings.extend(&other.warnings);
    }
}

/// Credentials that were presented and are invalid. The text has the reason for the log, and never contains the
/// credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidCredentials {
    /// Why they are invalid.
    pub reason: String,
    /// Remarks about the credentials; `None` for most of them.
    pub remarks: Option<Arc<Remarks>>,
}

impl InvalidCredentials {
    /// Invalid credentials, for this reason.
    pub fn new(reason: impl Into<String>) -> InvalidCredentials {
        InvalidCredentials { reason: reason.into(), remarks: None }
    }

    /// The same credentials, with these remarks about them.
    #[must_use]
    pub fn with_remarks(self, remarks: Remarks) -> InvalidCredentials {
        InvalidCredentials { remarks: remarks.shared(), ..self }
    }

    /// Joins the results of two authenticators for the same credentials. A reason that both have is listed once.
    #[must_use]
    pub fn and(self, other: InvalidCredentials) -> InvalidCredentials {
        let reason = match self.reason == other.reason {
            true => self.reason,
            false => format!("{}, {}", self.reason, other.reason),
        };
        let remarks = match (self.remarks, other.remarks) {
            (Some(mut own), Some(other)) => {
                Arc::make_mut(&mut own).add(&other);
                Some(own)
            }
            (own, other) => own.or(other),
        };
        InvalidCredentials { reason, remarks }
    }
}

/// The result of an authenticator: a user, `None` when it does not recognize the credentials, or an error when they are
/// invalid.
pub type Authentication = Result<Option<Authenticated>, InvalidCredentials>;

/// Authenticates requests.
pub trait Authenticator: Send + Sync {
    /// Authenticates a request by its credentials.
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, Authentication>;
}

/// Authenticates bearer tokens.
pub trait TokenAuthenticator: Send + Sync {
    /// Authenticates a token for one of `audiences`; an empty list stands for the server's own.
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication>;
}
