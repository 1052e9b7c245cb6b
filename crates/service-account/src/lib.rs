//! Authenticates service accounts, and nodes that join a cluster, by tokens.
//!
//! A [`TokenIssuer`] signs tokens for service accounts, bound to their account and optionally to a pod, a secret or a
//! node ([`Binding`]). [`ServiceAccountTokens`] verifies them: signature, audiences, lifetime, and the existence of
//! the bound objects. The objects are checked for every request; only the validity of a signature is cached
//! ([`VerifiedTokens`](verified)). [`BootstrapTokens`] are secrets in `kube-system`. [`OpenIdMetadata`] publishes the
//! documents with which others verify tokens.
//!
//! An [`ExternalSigner`] has the keys instead of this server.
//!
//! An [`ObjectGetter`] looks up objects; the crate depends neither on HTTP nor on storage. No token and no key is in
//! an error or in the log.

mod bootstrap_tokens;
mod claims;
mod config;
mod external_signer;
mod issuer;
mod keys;
mod legacy;
mod metrics;
mod objects;
mod openid;
mod read_claims;
mod service_account_tokens;
pub mod user;
mod verified;

pub use bootstrap_tokens::BootstrapTokens;
pub use claims::{Binding, Reference, credential_id_of};
pub use config::Config;
pub use external_signer::{ExternalSigner, ExternalSignerError, ExternalSignerMetrics};
pub use issuer::{Expiration, IssueError, IssuedToken, TokenIssuer, TokenSpec};
pub use keys::{TokenKeys, TokenKeysError};
pub use metrics::TokenMetrics;
pub use objects::{Found, ObjectGetter, ObjectKind};
pub use openid::{CONFIGURATION_PATH, KEYS_PATH, OpenIdError, OpenIdMetadata};
pub use service_account_tokens::ServiceAccountTokens;
