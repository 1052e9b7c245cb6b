//! API services of what this server serves itself: the aggregator's controller, told of definitions by the API extensions.

use pintle_aggregator::{AutoRegistration, CustomGroupVersions};
use pintle_apiextensions::{ApiExtensions, GroupVersions};
use pintle_apiserver::{
    health::{CheckScope, Health},
    registry::Stores,
};
use pintle_machinery::GroupVersion;
use pintle_registry::BoxFuture;
use std::{collections::BTreeSet, sync::Arc};
use tokio::sync::watch;

/// The controller for `aggregator`, which registers what `local` serve, and its health check; `None` where API services
/// are switched off.
pub(crate) fn auto_registration(
    aggregator: &Arc<Stores>,
    local: &[&Arc<Stores>],
    api_extensions: &ApiExtensions,
    health: &Health,
) -> Option<Arc<AutoRegistration>> {
    let resources = local.iter().flat_map(|stores| stores.resources().iter());
    let served: BTreeSet<GroupVersion> =
        resources.map(|resource| resource.resource.resource.group_version()).collect();
    let definitions =
        Definitions { group_versions: api_extensions.group_versions(), synced: api_extensions.synced() };
    let registration = AutoRegistration::new(aggregator, served, Arc::new(definitions))?;
    let checked = registration.clone();
    health.add(
        "autoregister-completion",
        CheckScope::Always,
        Arc::new(move || match checked.pending() {
            pending if pending.is_empty() => Ok(()),
            pending => Err(format!("missing APIService: [{}]", pending.join(" "))),
        }),
    );
    Some(registration)
}

struct Definitions {
    group_versions: Arc<GroupVersions>,
    synced: watch::Receiver<bool>,
}

impl CustomGroupVersions for Definitions {
    fn is_served(&self, group_version: &GroupVersion) -> bool {
        self.group_versions.is_served(group_version)
    }

    fn wait_synced(&self) -> BoxFuture<'_, ()> {
        // Who has ended will tell of nothing more.
        Box::pin(async move { drop(self.synced.clone().wait_for(|synced| *synced).await) })
    }

    fn changed(&self) -> BoxFuture<'_, Vec<GroupVersion>> {
        Box::pin(self.group_versions.changed())
    }
}
