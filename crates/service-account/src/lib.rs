//! Tokens by which service accounts, and those who join a cluster, prove who they are.
//!
//! A [`TokenIssuer`] signs tokens for service accounts, bound to their account and perhaps to a pod, a secret or a node
//! ([`Binding`]). [`ServiceAccountTokens`] verifies them: who signed, for whom, for how long, and whether what they are
//! bound to is still there. Nothing is believed for longer than one request without looking at the objects; what is kept
//! of a token is that its signature is right ([`VerifiedTokens`](verified)). [`BootstrapTokens`] are secrets in
//! `kube-system`. [`OpenIdMetadata`] tells others how to verify tokens.
//!
//! Objects are looked up by an [`ObjectGetter`]; nothing here knows HTTP or how objects are stored. No token and no key is
//! in an error or in the log.

mod bootstrap_tokens;
mod claims;
mod issuer;
mod keys;
mod legacy;
mod metrics;
mod objects;
mod openid;
mod service_account_tokens;
pub mod user;
mod verified;

pub use bootstrap_tokens::BootstrapTokens;
pub use claims::{Binding, Reference};
pub use issuer::{Expiration, IssueError, IssuedToken, TokenIssuer, TokenSpec};
pub use keys::{TokenKeys, TokenKeysError};
pub use metrics::TokenMetrics;
pub use objects::{Found, ObjectGetter, ObjectKind};
pub use openid::{CONFIGURATION_PATH, KEYS_PATH, OpenIdError, OpenIdMetadata};
pub use service_account_tokens::{Config, ServiceAccountTokens};
