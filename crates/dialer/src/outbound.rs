//! How the server reaches others.

use crate::{EgressSelector, ServiceResolver};
use std::sync::Arc;

/// How the server reaches others: the addresses of services, and the dialers of networks.
#[derive(Clone)]
pub struct Outbound {
    /// Resolves services.
    pub services: Arc<dyn ServiceResolver>,
    /// The dialers of networks.
    pub egress: EgressSelector,
}

impl Outbound {
    /// Services are resolved by a resolver, and all connections are direct.
    pub fn direct(services: Arc<dyn ServiceResolver>) -> Outbound {
        Outbound { services, egress: EgressSelector::default() }
    }
}
