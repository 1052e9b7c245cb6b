//! Authenticates requests by client certificates, front proxies and tokens: those of a file, of OpenID Connect issuers
//! and of webhooks (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/>).
//!
//! [`Union`] combines the configured authenticators. The traits are in `pintle-auth`, the tokens of service accounts in
//! `pintle-service-account`. This crate knows neither HTTP serving nor storage.
//!
//! **No token is accepted without a valid signature of its issuer, an entry in the token file or a webhook's approval,
//! and no token appears in an error or a log.**

mod anonymous;
mod audiences;
mod ca_bundle;
mod certificate_verifier;
pub mod config;
mod expiring_cache;
mod front_proxy;
mod group;
mod metrics;
pub mod oidc;
#[cfg(test)]
mod testing;
mod token_cache;
mod token_file;
mod token_review;
mod union;
mod x509;

pub use anonymous::Anonymous;
pub use audiences::AudienceAgnostic;
pub use ca_bundle::{Authorities, CaBundle, CaBundleError};
pub use front_proxy::FrontProxy;
pub use metrics::AuthenticationMetrics;
pub use oidc::JwtMetrics;
pub use token_cache::{TokenCache, TokenCacheConfig, TokenCacheMetrics};
pub use token_file::{TokenFile, TokenFileError};
pub use token_review::{TokenReviewVersion, TokenReviewWebhook};
pub use union::{TokenUnion, Union};
pub use x509::ClientCertificates;
