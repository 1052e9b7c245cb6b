//! The discovery documents of the servers behind API services.
//!
//! Each server is asked for the aggregated form of all its versions, and if it has none, for the legacy form of each
//! registered version. Requests read what was learnt last. A version whose server cannot be asked is listed as stale, without
//! resources.

mod document;

pub use document::{DiscoveredGroup, DiscoveredVersions, aggregated, aggregated_groups, legacy};

use crate::{
    api_service::resource_name,
    api_services::{ApiService, ApiServices, Snapshot},
    ask::{Ask, Network, OwnUser, Question, etag_of},
    backend::Fetched,
    servers::{self, Behind, Follower, back_off},
};
use arc_swap::ArcSwap;
use document::{is_aggregated, without_resources};
use parking_lot::Mutex;
use pintle_apiserver::{
    discovery::{ApiServiceGroups, ApiServiceSource, RegisteredVersion},
    post_start_hooks::HookContext,
};
use pintle_machinery::{GroupVersion, Value, ValueExt};
use pintle_offload::beside;
use pintle_registry::BoxFuture;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Semaphore;

/// The interval between questions to a server whose API services do not change, and the longest delay after failures.
const INTERVAL: Duration = Duration::from_secs(60);
/// The delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// How long a server may take for one document.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a document in bytes.
const MAX_SIZE: usize = 4 << 20;
/// The number of servers that are asked at a time, which bounds the memory of documents that are being read.
const SERVERS: usize = 64;

const ACCEPT_AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Learns and publishes the discovery documents of the servers behind API services.
pub struct DiscoveryManager {
    api_services: Arc<ApiServices>,
    ask: Arc<dyn Ask>,
    permits: Semaphore,
    learnt: Mutex<Learnt>,
    published: ArcSwap<ApiServiceGroups>,
}

/// The published state: the API services, and the documents of those versions that other servers serve.
#[derive(Default)]
struct Learnt {
    snapshot: Arc<Snapshot>,
    documents: HashMap<GroupVersion, Arc<Value>>,
}

/// The state of one server: its last documents and its failures since.
#[derive(Default)]
pub(crate) struct Known {
    versions: DiscoveredVersions,
    etag: Option<String>,
    failures: u32,
}

impl DiscoveryManager {
    /// Creates the manager, not yet running.
    pub fn new(api_services: &Arc<ApiServices>) -> Arc<DiscoveryManager> {
        DiscoveryManager::asking(api_services, Arc::new(Network))
    }

    fn asking(api_services: &Arc<ApiServices>, ask: Arc<dyn Ask>) -> Arc<DiscoveryManager> {
        Arc::new(DiscoveryManager {
            api_services: api_services.clone(),
            ask,
            permits: Semaphore::new(SERVERS),
            learnt: Mutex::default(),
            published: ArcSwap::from_pointee(ApiServiceGroups::new(resource_name().group, Vec::new())),
        })
    }

    /// Starts to ask servers.
    pub fn start(self: &Arc<Self>, hook: &HookContext) {
        servers::start(&self.api_services, self, hook);
    }

    fn publish(&self, learnt: &Learnt) {
        let registered = learnt.snapshot.values().filter(|service| !service.group_version.version.is_empty());
        let registered = registered.map(|service| RegisteredVersion {
            name: service.name.to_string(),
            group: service.group_version.group.clone(),
            version: service.group_version.version.clone(),
            group_priority: service.group_priority,
            version_priority: service.version_priority,
            remote: learnt.documents.get(&service.group_version).cloned(),
        });
        let groups = ApiServiceGroups::new(resource_name().group, registered.collect());
        self.published.store(Arc::new(groups));
    }

    /// Sets the documents of some API services.
    fn learn(&self, documents: Vec<(GroupVersion, Arc<Value>)>) {
        let mut learnt = self.learnt.lock();
        let mut is_changed = false;
        for (group_version, document) in documents {
            // The API service may have gone meanwhile.
            if !remote_versions(&learnt.snapshot).any(|own| *own == group_version) {
                continue;
            }
            let old = learnt.documents.insert(group_version, document.clone());
            is_changed |= old.is_none_or(|old| old != document);
        }
        if is_changed {
            self.publish(&learnt);
        }
    }

    /// Asks a server for all versions; returns their documents, and whether there was a failure.
    async fn ask_server(
        &self,
        behind: &Behind,
        known: &mut Known,
    ) -> (Vec<(GroupVersion, Arc<Value>)>, bool) {
        let services = &behind.api_services;
        let question = Question {
            path: "/apis".to_owned(),
            user: OwnUser::KubeAggregatorOfMasters,
            accept: Some(ACCEPT_AGGREGATED),
            etag: known.etag.clone(),
            timeout: TIMEOUT,
            limit: MAX_SIZE,
        };
        let answer = match self.ask.ask(&behind.backend, question).await {
            Ok(answer) if answer.status != 503 => answer,
            _ => return (all_stale(services), true),
        };
        if answer.status == 304 && known.etag.is_some() {
            return (of_versions(services, &known.versions), false);
        }
        let content_type = answer.headers.get(http::header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        if answer.status != 200 || !is_aggregated(content_type) {
            return self.ask_for_legacy(behind, known.etag.as_ref()).await;
        }
        let etag = etag_of(&answer);
        match read(answer, |answer| aggregated(&answer.body)).await {
            Ok(versions) => {
                (known.versions, known.etag) = (versions, etag);
                (of_versions(services, &known.versions), false)
            }
            Err(error) => {
                tracing::debug!(server = ?behind.backend.spec().name, %error, "a discovery document is unusable");
                (all_stale(services), true)
            }
        }
    }

    /// Asks a server for the legacy document of each version. After a question without an answer, it is asked no more.
    async fn ask_for_legacy(
        &self,
        behind: &Behind,
        etag: Option<&String>,
    ) -> (Vec<(GroupVersion, Arc<Value>)>, bool) {
        let (mut documents, mut is_failed, mut is_silent) = (Vec::new(), false, false);
        for service in &behind.api_services {
            let group_version = &service.group_version;
            let question = Question {
                path: match group_version.group.as_str() {
                    "" => format!("/api/{}", group_version.version),
                    group => format!("/apis/{group}/{}", group_version.version),
                },
                user: OwnUser::KubeAggregator,
                accept: Some("application/json"),
                etag: etag.cloned(),
                timeout: TIMEOUT,
                limit: MAX_SIZE,
            };
            let answer = match is_silent {
                true => Err(String::new()),
                false => self.ask.ask(&behind.backend, question).await,
            };
            is_silent |= answer.is_err();
            let version = group_version.version.clone();
            let converted = match answer {
                Ok(answer) if answer.status == 200 => {
                    read(answer, move |answer| legacy(&answer.body, &version)).await
                }
                Ok(answer) => Err(format!("status {}", answer.status)),
                Err(error) => Err(error),
            };
            documents.push(match converted {
                Ok(document) => (group_version.clone(), with_freshness(&document, CURRENT)),
                Err(_) => {
                    is_failed = true;
                    stale(service)
                }
            });
        }
        (documents, is_failed)
    }
}

const CURRENT: &str = "Current";
const STALE: &str = "Stale";

impl Follower for DiscoveryManager {
    type State = Known;

    fn api_services_changed(&self) {
        let mut learnt = self.learnt.lock();
        let snapshot = self.api_services.current();
        if Arc::ptr_eq(&snapshot, &learnt.snapshot) {
            return;
        }
        let remote: HashSet<&GroupVersion> = remote_versions(&snapshot).collect();
        learnt.documents.retain(|group_version, _| remote.contains(group_version));
        learnt.snapshot = snapshot.clone();
        self.publish(&learnt);
    }

    fn refresh<'a>(&'a self, server: Behind, known: &'a mut Known) -> BoxFuture<'a, Duration> {
        Box::pin(async move {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
            let (documents, is_failed) = self.ask_server(&server, known).await;
            self.learn(documents);
            match is_failed {
                false => {
                    known.failures = 0;
                    INTERVAL
                }
                true => {
                    known.failures = known.failures.saturating_add(1);
                    back_off(known.failures, FIRST_DELAY, INTERVAL)
                }
            }
        })
    }
}

impl ApiServiceSource for DiscoveryManager {
    fn current(&self) -> Arc<ApiServiceGroups> {
        // A reader that has seen an API service finds its group.
        self.api_services_changed();
        self.published.load_full()
    }
}

/// Reads an answer beside the workers, if it is large.
async fn read<T: Send + 'static>(answer: Fetched, read: impl FnOnce(&Fetched) -> T + Send + 'static) -> T {
    beside(move || read(&answer)).await
}

fn remote_versions(snapshot: &Snapshot) -> impl Iterator<Item = &GroupVersion> {
    let remote = snapshot.values().filter(|service| service.backend.is_some());
    remote.map(|service| &service.group_version)
}

/// The documents of API services, from those of all versions of their server. A version that the server does not list has no
/// resources.
fn of_versions(
    services: &[Arc<ApiService>],
    versions: &DiscoveredVersions,
) -> Vec<(GroupVersion, Arc<Value>)> {
    let document = |service: &Arc<ApiService>| {
        let document = match versions.get(&service.group_version) {
            Some(document) => with_freshness(document, CURRENT),
            None => with_freshness(&without_resources(&service.group_version.version), CURRENT),
        };
        (service.group_version.clone(), document)
    };
    services.iter().map(document).collect()
}

fn all_stale(services: &[Arc<ApiService>]) -> Vec<(GroupVersion, Arc<Value>)> {
    services.iter().map(|service| stale(service)).collect()
}

fn stale(service: &ApiService) -> (GroupVersion, Arc<Value>) {
    let document = without_resources(&service.group_version.version);
    (service.group_version.clone(), with_freshness(&document, STALE))
}

fn with_freshness(document: &Value, freshness: &str) -> Arc<Value> {
    let mut document = document.clone();
    document.set("freshness", freshness);
    Arc::new(document)
}

#[cfg(test)]
mod tests;
