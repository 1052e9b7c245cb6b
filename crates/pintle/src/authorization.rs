//! Who may do what.

use pintle_auth::authz::{Authorizer, AuthorizerChain, PrivilegedGroups};
use pintle_machinery::user::SYSTEM_MASTERS;
use std::sync::Arc;

/// Members of `system:masters` may do everything; of everybody else, the authorizers are asked in their order.
pub(crate) fn authorizer(mut authorizers: Vec<Arc<dyn Authorizer>>) -> Arc<dyn Authorizer> {
    authorizers.insert(0, Arc::new(PrivilegedGroups::new([SYSTEM_MASTERS])));
    Arc::new(AuthorizerChain::new(authorizers))
}
