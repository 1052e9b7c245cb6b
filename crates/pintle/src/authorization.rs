//! Who may do what.

use crate::chain::Chain;
use pintle_auth::authz::{Authorizer, AuthorizerChain, PrivilegedGroups};
use pintle_machinery::{GroupResource, user::SYSTEM_MASTERS};
use pintle_rbac::{GROUP_NAME, Rbac, Sources};
use std::sync::Arc;
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

/// Members of `system:masters` may do everything; of everybody else, the authorizers are asked in their order.
pub(crate) fn authorizer(mut authorizers: Vec<Arc<dyn Authorizer>>) -> Arc<dyn Authorizer> {
    authorizers.insert(0, Arc::new(PrivilegedGroups::new([SYSTEM_MASTERS])));
    Arc::new(AuthorizerChain::new(authorizers))
}

/// Feeds the roles and bindings of the server to what decides by them.
pub(crate) fn follow(
    rbac: &Arc<Rbac>,
    chain: &Chain,
    stopping: &watch::Receiver<bool>,
) -> Vec<JoinHandle<()>> {
    let cacher = |resource| {
        let store = chain.stores.store(&GroupResource::new(GROUP_NAME, resource)).ok()?;
        Some(store.cacher().clone())
    };
    let sources = Sources {
        roles: cacher("roles"),
        cluster_roles: cacher("clusterroles"),
        role_bindings: cacher("rolebindings"),
        cluster_role_bindings: cacher("clusterrolebindings"),
    };
    rbac.follow(sources, &Handle::current(), stopping)
}
