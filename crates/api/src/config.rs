//! Defines the configuration that the kinds depend on.

use crate::{authentication::token_review::TokenReviewer, core::service::ServiceNetwork};
use pintle_rbac::Rbac;
use pintle_service_account::TokenIssuer;
use std::{sync::Arc, time::Duration};

/// The configuration that the kinds depend on.
#[derive(Debug, Clone)]
pub struct Config {
    /// The network from which services get addresses and ports.
    pub service_network: Arc<ServiceNetwork>,
    /// The time for which events are kept; zero keeps them without limit.
    pub event_ttl: Duration,
    /// Signs tokens for service accounts; `None` issues none.
    pub token_issuer: Option<Arc<TokenIssuer>>,
    /// Authenticates the tokens of token reviews.
    pub token_reviewer: Arc<TokenReviewer>,
    /// The index of roles and bindings, for the prevention of privilege escalation.
    pub rbac: Arc<Rbac>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            service_network: Arc::default(),
            event_ttl: Duration::from_secs(60 * 60),
            token_issuer: Some(Arc::default()),
            token_reviewer: Arc::default(),
            rbac: Arc::default(),
        }
    }
}
