//! Registers API services for the groups and versions that this server serves itself, built-in and custom.

use pintle_aggregator::{AutoRegistration, CustomGroupVersions};
use pintle_apiextensions::ApiExtensions;
use pintle_apiserver::{health::Check, registry::Stores};
use pintle_machinery::{GroupVersion, Status};
use pintle_registry::BoxFuture;
use std::{collections::BTreeSet, sync::Arc};

/// The controller of `aggregator`, which registers the groups and versions of `local`; `None` when API services are
/// disabled.
pub(crate) fn auto_registration(
    aggregator: &Arc<Stores>,
    local: &[&Arc<Stores>],
    api_extensions: &Arc<ApiExtensions>,
) -> Option<Arc<AutoRegistration>> {
    let resources = local.iter().flat_map(|stores| stores.resources().iter());
    let served: BTreeSet<GroupVersion> =
        resources.map(|resource| resource.resource.resource.group_version()).collect();
    AutoRegistration::new(aggregator, served, Arc::new(Definitions(api_extensions.clone())))
}

/// The health check that all API services are registered.
pub(crate) fn is_complete(registration: &Arc<AutoRegistration>) -> Check {
    let checked = registration.clone();
    Arc::new(move || match checked.pending() {
        pending if pending.is_empty() => Ok(()),
        pending => Err(format!("missing APIService: [{}]", pending.join(" "))),
    })
}

struct Definitions(Arc<ApiExtensions>);

impl CustomGroupVersions for Definitions {
    fn is_served(&self, group_version: &GroupVersion) -> bool {
        self.0.group_versions().is_served(group_version)
    }

    fn wait_synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.wait_synced())
    }

    fn require_known(&self) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(self.0.require_known_definitions())
    }

    fn changed(&self) -> BoxFuture<'_, Vec<GroupVersion>> {
        Box::pin(self.0.group_versions().changed())
    }
}
