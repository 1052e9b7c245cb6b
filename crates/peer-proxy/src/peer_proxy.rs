//! The parts of the proxy, and their tasks.

use crate::{
    EndpointLeases, PeerClient, PeerMetrics,
    catalog::{Catalog, PeerDocument},
    exclusions::Exclusions,
    identities::Identities,
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_apiserver::{
    discovery::{PeerGroupSource, PeerGroups},
    post_start_hooks::HookContext,
    serving::stopped,
};
use pintle_cacher::Cacher;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::time::{Instant, sleep_until};

/// The proxy between servers of different versions.
pub struct PeerProxy {
    pub(crate) leases: EndpointLeases,
    pub(crate) client: PeerClient,
    pub(crate) metrics: PeerMetrics,
    pub(crate) identities: Identities,
    exclusions: Exclusions,
    /// The documents of other servers, by their identities.
    known: Mutex<BTreeMap<String, Known>>,
    catalog: ArcSwap<Catalog>,
    is_synced: AtomicBool,
}

/// The last discovery document of another server.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The holder of the server's lease when it was asked.
    pub(crate) holder: String,
    pub(crate) document: Arc<PeerDocument>,
}

/// The watch caches that the proxy follows; `None` for a resource that is disabled.
#[derive(Clone)]
pub struct Sources {
    /// The leases.
    pub leases: Option<Arc<Cacher>>,
    /// The definitions of custom resources.
    pub definitions: Option<Arc<Cacher>>,
    /// The API services.
    pub api_services: Option<Arc<Cacher>>,
}

impl PeerProxy {
    /// The proxy, not yet running: until then it forwards nothing.
    pub fn new(leases: EndpointLeases, client: PeerClient, metrics: PeerMetrics) -> Arc<PeerProxy> {
        Arc::new(PeerProxy {
            identities: Identities::new(leases.own_id()),
            leases,
            client,
            metrics,
            exclusions: Exclusions::default(),
            known: Mutex::default(),
            catalog: ArcSwap::default(),
            is_synced: AtomicBool::new(false),
        })
    }

    /// The client of the other servers.
    pub fn client(&self) -> &PeerClient {
        &self.client
    }

    /// Starts to follow the leases of other servers and the excluded groups and versions. [`PeerProxy::wait_synced`] waits
    /// for them.
    pub fn start(self: &Arc<Self>, sources: &Sources, hook: &HookContext) {
        let (proxy, sources, stopping) = (self.clone(), sources.clone(), hook.stopping().clone());
        hook.spawn_restarting(move || {
            let (proxy, sources, mut stopping) = (proxy.clone(), sources.clone(), stopping.clone());
            async move {
                let Sources { leases, definitions, api_services } = &sources;
                let stop = stopping.clone();
                tokio::select! {
                    () = stopped(&mut stopping) => {}
                    _ = async {
                        tokio::join!(
                            proxy.identities.run(leases.as_ref(), stop.clone()),
                            proxy.exclusions.run(definitions.as_ref(), api_services.as_ref(), stop.clone()),
                            proxy.client.follow_certificate(),
                            proxy.follow_exclusions(),
                        )
                    } => {}
                }
            }
        });
    }

    /// Starts to ask the other servers for their discovery.
    pub fn start_discovery(self: &Arc<Self>, hook: &HookContext) {
        let (proxy, stopping) = (self.clone(), hook.stopping().clone());
        hook.spawn_restarting(move || {
            let (proxy, mut stopping) = (proxy.clone(), stopping.clone());
            async move {
                tokio::select! {
                    () = stopped(&mut stopping) => {}
                    () = proxy.follow_peers() => {}
                }
            }
        });
    }

    /// Waits until the leases, and the excluded groups and versions, that existed at the start are known.
    pub async fn wait_synced(&self) {
        self.identities.wait_synced().await;
        self.exclusions.wait_synced().await;
        self.is_synced.store(true, Ordering::Release);
    }

    /// Whether requests may be forwarded.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Acquire)
    }

    /// The groups, versions and resources of the other servers.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The documents of other servers.
    pub(crate) fn known(&self) -> BTreeMap<String, Known> {
        self.known.lock().clone()
    }

    /// Changes the documents of other servers.
    pub(crate) fn learn(&self, change: impl FnOnce(&mut BTreeMap<String, Known>)) {
        let mut known = self.known.lock();
        change(&mut known);
        self.publish(&known);
    }

    /// Publishes what the other servers serve. Returns when that changes by itself, if it does.
    fn publish(&self, known: &BTreeMap<String, Known>) -> Option<Instant> {
        let (excluded, next) = self.exclusions.current(Instant::now());
        let documents = known.iter().map(|(id, known)| (id.clone(), known.document.clone())).collect();
        self.catalog.store(Arc::new(Catalog::new(self.leases.own_id(), &documents, &excluded)));
        next
    }

    /// Publishes again whenever the exclusions change. Never returns.
    async fn follow_exclusions(&self) {
        let mut changes = self.exclusions.changes();
        loop {
            changes.mark_unchanged();
            let next = self.publish(&self.known.lock());
            let expired = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The sender lives as long as this.
                _ = changes.changed() => {}
                () = expired => {}
            }
        }
    }
}

impl PeerGroupSource for PeerProxy {
    fn current(&self) -> Arc<PeerGroups> {
        self.catalog.load().groups().clone()
    }
}
