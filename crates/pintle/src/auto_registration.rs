//! Registers API services for the groups and versions that this server serves itself, built-in and custom.

use pintle_aggregator::{AutoRegistration, CustomGroupVersions};
use pintle_apiextensions::{ApiExtensions, GroupVersions};
use pintle_apiserver::{health::Check, registry::Stores};
use pintle_machinery::GroupVersion;
use pintle_registry::BoxFuture;
use std::{collections::BTreeSet, sync::Arc};
use tokio::sync::watch;

/// The controller of `aggregator`, which registers the groups and versions of `local`; `None` when API services are
/// disabled.
pub(crate) fn auto_registration(
    aggregator: &Arc<Stores>,
    local: &[&Arc<Stores>],
    api_extensions: &ApiExtensions,
) -> Option<Arc<AutoRegistration>> {
    let resources = local.iter().flat_map(|stores| stores.resources().iter());
    let served: BTreeSet<GroupVersion> =
        resources.map(|resource| resource.resource.resource.group_version()).collect();
    let definitions =
        Definitions { group_versions: api_extensions.group_versions(), synced: api_extensions.synced() };
    AutoRegistration::new(aggregator, served, Arc::new(definitions))
}

/// The health check that all API services are registered.
pub(crate) fn is_complete(registration: &Arc<AutoRegistration>) -> Check {
    let checked = registration.clone();
    Arc::new(move || match checked.pending() {
        pending if pending.is_empty() => Ok(()),
        pending => Err(format!("missing APIService: [{}]", pending.join(" "))),
    })
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
        // If the sender is gone, no change will follow.
        Box::pin(async move { drop(self.synced.clone().wait_for(|synced| *synced).await) })
    }

    fn changed(&self) -> BoxFuture<'_, Vec<GroupVersion>> {
        Box::pin(self.group_versions.changed())
    }
}
