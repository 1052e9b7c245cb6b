//! Authenticates tokens of OpenID Connect issuers
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens>).
//!
//! The discovery of an issuer starts with the server and is retried until it succeeds; until then the issuer's tokens
//! are rejected. Its keys are fetched for a token that no cached key verifies, once for all waiting requests. Requests
//! with tokens of cached keys never wait.

mod authenticator;
mod claims;
mod distributed_claims;
mod go_time;
mod id_token;
mod issuers;
mod key_set;
mod metrics;
mod provider;
#[cfg(test)]
mod tests;
mod verifier;

pub use authenticator::JwtTokenAuthenticator;
pub use issuers::Issuers;
pub use metrics::JwtMetrics;
pub use pintle_jwt::Algorithm;
