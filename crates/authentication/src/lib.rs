//! Who you are, as others know it: issuers of OpenID Connect, webhooks, and the configuration file that names them
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/>).
//!
//! What is small, and what the server knows by itself, is in `pintle-auth`; both speak of users by its traits. Nothing here
//! knows how requests are served or where objects are.
//!
//! **No token is believed that an issuer's key did not sign, and none shows in an error or a log.**

pub mod config;
mod metrics;
pub mod oidc;
mod token_review;

pub use metrics::JwtMetrics;
pub use token_review::{TokenReviewVersion, TokenReviewWebhook};
