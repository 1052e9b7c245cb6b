//! Authenticates tokens by external sources: OpenID Connect issuers, webhooks, and the configuration file that names
//! them (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/>).
//!
//! Authenticators that need no external source are in `pintle-auth`, which also has the traits. This crate knows
//! neither HTTP serving nor storage.
//!
//! **No token is accepted without a valid signature of the issuer, and no token appears in an error or a log.**

pub mod config;
mod metrics;
pub mod oidc;
mod token_review;

pub use metrics::JwtMetrics;
pub use token_review::{TokenReviewVersion, TokenReviewWebhook};
