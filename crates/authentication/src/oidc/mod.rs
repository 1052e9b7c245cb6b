//! Tokens of issuers that speak OpenID Connect
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens>).
//!
//! An issuer is asked for its description when the server starts, again and again until it answers; until then its tokens
//! are refused. Its keys are fetched when a token comes that no known key has signed, once for all who wait. Requests with
//! tokens of known keys never wait.

mod authenticator;
mod claims;
mod distributed_claims;
mod issuers;
mod key_set;
mod provider;
#[cfg(test)]
mod tests;
mod verifier;

pub use authenticator::JwtTokenAuthenticator;
pub use issuers::Issuers;
pub use pintle_jwt::Algorithm;
