//! The configuration of the authenticator of tokens.

use crate::{ObjectGetter, TokenKeys, TokenMetrics};
use std::sync::Arc;

/// The configuration of [`ServiceAccountTokens`](crate::ServiceAccountTokens).
pub struct Config {
    /// The accepted issuers.
    pub issuers: Vec<String>,
    /// The verifying keys.
    pub keys: Arc<TokenKeys>,
    /// The server's own audiences.
    pub audiences: Vec<String>,
    /// Whether the secret of a legacy token is looked up.
    pub lookup: bool,
    /// Looks up the objects of tokens.
    pub objects: Arc<dyn ObjectGetter>,
    /// The metrics.
    pub metrics: Arc<TokenMetrics>,
}
