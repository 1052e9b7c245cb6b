//! The OpenAPI documents of the servers behind API services.
//!
//! Their OpenAPI 2 documents are merged into that of this server
//! ([`pintle_openapi::RemoteDocuments`]); of OpenAPI 3 only the index is learnt, since the documents themselves are proxied.
//! A server that cannot be asked keeps what it had.

mod index;

use crate::{
    api_services::{ApiService, ApiServices, Snapshot},
    ask::{Ask, Network, OwnUser, Question, etag_of},
    servers::{self, Behind, Follower, back_off},
};
use arc_swap::ArcSwap;
use index::{RemoteIndex, entries};
use parking_lot::Mutex;
use pintle_apiserver::post_start_hooks::HookContext;
use pintle_offload::beside;
use pintle_openapi::{PackedDocument, RemoteDocument, RemoteDocuments};
use pintle_registry::BoxFuture;
use sha2::{Digest as _, Sha256};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Semaphore;

/// The interval between questions to a server, and the delay after the first failure.
const INTERVAL: Duration = Duration::from_secs(60);
/// The longest delay after failures.
const LONGEST_DELAY: Duration = Duration::from_secs(60 * 60);
/// The delay after the first document: a server that has just become reachable may not have all of it yet.
const SOON: Duration = Duration::from_secs(1);
/// How long a server may take for a document.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of an OpenAPI 2 document in bytes. That of kube-apiserver has four million.
const MAX_DOCUMENT: usize = 12 << 20;
/// The maximum size of the parts for all API services of a server in bytes: definitions that no path uses are in each of
/// them. API services beyond it have no document.
const MAX_PARTS: usize = 48 << 20;
/// The maximum size of an index of OpenAPI 3 in bytes.
const MAX_INDEX: usize = 1 << 20;
/// The number of servers that are asked at a time, which bounds the memory of documents that are being read.
const SERVERS: usize = 32;

/// Learns and publishes the OpenAPI documents of the servers behind API services.
pub struct OpenApiManager {
    api_services: Arc<ApiServices>,
    ask: Arc<dyn Ask>,
    permits: Semaphore,
    /// Held while a document is a tree, which takes a multiple of its text.
    reading: tokio::sync::Mutex<()>,
    learnt: Mutex<Learnt>,
    documents: ArcSwap<Vec<Arc<PackedDocument>>>,
    index: ArcSwap<RemoteIndex>,
}

/// The published state, by the names of API services.
#[derive(Default)]
struct Learnt {
    snapshot: Arc<Snapshot>,
    documents: HashMap<Arc<str>, Arc<PackedDocument>>,
    indices: HashMap<Arc<str>, BTreeMap<String, String>>,
}

/// The state of one server: the identity of its last document, and its failures since.
#[derive(Default)]
pub(crate) struct Known {
    etag: Option<String>,
    /// The hash of the OpenAPI 2 document.
    content: Option<[u8; 32]>,
    failures: u32,
}

impl OpenApiManager {
    /// Creates the manager, not yet running.
    pub fn new(api_services: &Arc<ApiServices>) -> Arc<OpenApiManager> {
        OpenApiManager::asking(api_services, Arc::new(Network))
    }

    fn asking(api_services: &Arc<ApiServices>, ask: Arc<dyn Ask>) -> Arc<OpenApiManager> {
        Arc::new(OpenApiManager {
            api_services: api_services.clone(),
            ask,
            permits: Semaphore::new(SERVERS),
            reading: tokio::sync::Mutex::default(),
            learnt: Mutex::default(),
            documents: ArcSwap::default(),
            index: ArcSwap::default(),
        })
    }

    /// Starts to ask servers.
    pub fn start(self: &Arc<Self>, hook: &HookContext) {
        servers::start(&self.api_services, self, hook);
    }

    /// The name of the API service whose server has the OpenAPI 3 document at `/openapi/v3/<key>`; `None` for documents of
    /// this server.
    pub fn owner(&self, key: &str) -> Option<Arc<str>> {
        self.index.load().owner(key)
    }

    fn publish(&self, learnt: &Learnt) {
        let mut services: Vec<&Arc<ApiService>> =
            learnt.snapshot.values().filter(|service| service.backend.is_some()).collect();
        let mut priorities: HashMap<&str, i64> = HashMap::new();
        for service in &services {
            let priority = priorities.entry(&service.group_version.group).or_default();
            *priority = service.group_priority.max(*priority);
        }
        // As kube-apiserver: by the priority of the group, then by name, whatever the priorities of versions.
        services.sort_by_cached_key(|service| {
            let group = priorities.get(service.group_version.group.as_str()).copied().unwrap_or_default();
            (Reverse(group), service.name.clone())
        });
        let documents = services.iter().filter_map(|service| learnt.documents.get(&service.name).cloned());
        self.documents.store(Arc::new(documents.collect()));
        self.index.store(Arc::new(RemoteIndex::new(&learnt.snapshot, &learnt.indices)));
    }

    /// Asks for the OpenAPI 2 document.
    ///
    /// # Errors
    /// The reason why there is none.
    async fn ask_for_document(&self, behind: &Behind, known: &mut Known) -> Result<(), String> {
        let available: Vec<Arc<ApiService>> =
            behind.api_services.iter().filter(|service| service.is_available).cloned().collect();
        let is_complete = {
            let learnt = self.learnt.lock();
            available.iter().all(|service| learnt.documents.contains_key(&service.name))
        };
        // Only documents of single API services are kept, so that a new one needs the whole document.
        let etag = known.etag.clone().filter(|_| is_complete);
        let is_conditional = etag.is_some();
        let answer = self
            .ask
            .ask(&behind.backend, question("/openapi/v2", Some("application/json"), etag, MAX_DOCUMENT))
            .await?;
        match answer.status {
            200 => {}
            304 if is_conditional => return Ok(()),
            status => return Err(format!("status {status}")),
        }
        let etag = etag_of(&answer);
        let content: [u8; 32] = Sha256::digest(&answer.body).into();
        if is_complete && known.content == Some(content) {
            known.etag = etag;
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        let services = available.clone();
        let read = move || {
            let document = RemoteDocument::parse(&answer.body)?;
            let prefixes = services.iter().map(|service| {
                let version = &service.group_version;
                format!("/apis/{}/{}/", version.group, version.version)
            });
            let mut length = 0;
            let parts = document.split(prefixes).map(|part| Arc::new(part.pack())).take_while(|part| {
                length += part.length();
                length <= MAX_PARTS
            });
            let names = services.iter().map(|service| service.name.clone());
            Ok::<Vec<_>, String>(names.zip(parts).collect())
        };
        let documents = beside(read).await?;
        (known.etag, known.content) = (etag, Some(content));
        let mut learnt = self.learnt.lock();
        for (name, document) in documents {
            // The API service may have gone meanwhile.
            if learnt.snapshot.contains_key(&name) {
                learnt.documents.insert(name, document);
            }
        }
        self.publish(&learnt);
        Ok(())
    }

    /// Asks for the index of OpenAPI 3.
    ///
    /// # Errors
    /// The reason why there is none.
    async fn ask_for_index(&self, behind: &Behind) -> Result<(), String> {
        let answer = self.ask.ask(&behind.backend, question("/openapi/v3", None, None, MAX_INDEX)).await?;
        if answer.status != 200 {
            return Err(format!("status {}", answer.status));
        }
        let index = entries(&answer.body)?;
        let mut learnt = self.learnt.lock();
        let mut is_changed = false;
        for service in behind.api_services.iter().filter(|service| service.is_available) {
            let own = index.of(&service.group_version);
            if !learnt.snapshot.contains_key(&service.name) || learnt.indices.get(&service.name) == Some(&own)
            {
                continue;
            }
            learnt.indices.insert(service.name.clone(), own);
            is_changed = true;
        }
        if is_changed {
            self.publish(&learnt);
        }
        Ok(())
    }
}

fn question(path: &str, accept: Option<&'static str>, etag: Option<String>, limit: usize) -> Question {
    Question { path: path.to_owned(), user: OwnUser::Aggregator, accept, etag, timeout: TIMEOUT, limit }
}

impl Follower for OpenApiManager {
    type State = Known;

    fn api_services_changed(&self) {
        let mut learnt = self.learnt.lock();
        let snapshot = self.api_services.current();
        let Learnt { snapshot: own, documents, indices } = &mut *learnt;
        if Arc::ptr_eq(&snapshot, own) {
            return;
        }
        let is_remote = |name: &Arc<str>| snapshot.get(name).is_some_and(|service| service.backend.is_some());
        documents.retain(|name, _| is_remote(name));
        indices.retain(|name, _| is_remote(name));
        *own = snapshot.clone();
        self.publish(&learnt);
    }

    fn refresh<'a>(&'a self, server: Behind, known: &'a mut Known) -> BoxFuture<'a, Duration> {
        Box::pin(async move {
            let had_failed = known.failures > 0 || known.content.is_none();
            let outcome = match server.api_services.iter().any(|service| service.is_available) {
                false => Err("no API service is available".to_owned()),
                true => {
                    // The semaphore is never closed.
                    let _permit = self.permits.acquire().await;
                    let (document, index) =
                        tokio::join!(self.ask_for_document(&server, known), self.ask_for_index(&server));
                    document.and(index)
                }
            };
            match outcome {
                Ok(()) => {
                    known.failures = 0;
                    if had_failed { SOON } else { INTERVAL }
                }
                Err(error) => {
                    known.failures = known.failures.saturating_add(1);
                    let name = &server.backend.spec().name;
                    tracing::debug!(server = %name, %error, "a server has no usable OpenAPI documents");
                    match server.is_changed {
                        true => INTERVAL,
                        false => back_off(known.failures, INTERVAL, LONGEST_DELAY),
                    }
                }
            }
        })
    }
}

impl RemoteDocuments for OpenApiManager {
    fn current(&self) -> Vec<Arc<PackedDocument>> {
        Vec::clone(&self.documents.load())
    }

    fn index(&self) -> BTreeMap<String, String> {
        self.index.load().urls()
    }
}

#[cfg(test)]
mod tests;
