//! Asks the other servers of the cluster for their discovery.
//!
//! A server is asked once in each of its runs, since its built-in resources stay the same; after a failure, again with
//! back-off. The document of the run before counts until then. A server that does not answer delays no other.

use crate::{
    catalog::PeerDocument,
    metrics::SyncError,
    peer_proxy::{Known, PeerProxy},
};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header::ACCEPT};
use pintle_aggregator::{fetch, remote_user};
use pintle_machinery::UserInfo;
use pintle_offload::beside;
use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Marks a request that another server has forwarded. It is not forwarded again.
pub(crate) const PEER_PROXIED: HeaderName = HeaderName::from_static("x-kubernetes-peer-proxied");
/// The value of the header.
pub(crate) const TRUE: HeaderValue = HeaderValue::from_static("true");

/// The forms of discovery that are accepted: that of the server alone; where it does not know the difference, the others.
const ACCEPTED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// How long a server may take for one document.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a document in bytes.
const MAX_SIZE: usize = 4 << 20;
/// The maximum number of other servers; more are not asked.
const MAX_PEERS: usize = 32;
/// The number of servers that are asked at a time, which bounds the memory of documents that are being read.
const AT_A_TIME: usize = 4;
/// The delay after the first failure, and between questions to a server that restarts again and again.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay after failures.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The user that asks.
const USER: &str = "system:apiserver";

/// When a server is asked again.
struct Turn {
    failures: u32,
    due: Instant,
}

impl PeerProxy {
    /// Asks each server when it is there. Never returns.
    pub(crate) async fn follow_peers(&self) {
        self.identities.wait_synced().await;
        let mut changes = self.identities.changes();
        let mut turns: HashMap<String, Turn> = HashMap::new();
        loop {
            changes.mark_unchanged();
            let holders = self.identities.holders();
            turns.retain(|id, _| holders.contains_key(id));
            let known = self.known();
            if known.keys().any(|id| !holders.contains_key(id)) {
                self.learn(|known| known.retain(|id, _| holders.contains_key(id)));
            }
            let is_new =
                |id: &String, holder: &String| known.get(id).is_none_or(|known| known.holder != *holder);
            let wanted: Vec<(String, String)> =
                holders.into_iter().filter(|(id, holder)| is_new(id, holder)).collect();
            let now = Instant::now();
            let (due, later): (Vec<_>, Vec<_>) =
                wanted.into_iter().partition(|(id, _)| turns.get(id).is_none_or(|turn| turn.due <= now));
            if !due.is_empty() {
                for (id, is_learnt) in self.ask(due).await {
                    let turn = turns.entry(id).or_insert(Turn { failures: 0, due: now });
                    turn.failures = if is_learnt { 0 } else { turn.failures.saturating_add(1) };
                    turn.due = Instant::now() + delay(turn.failures);
                }
                continue;
            }
            let next = later.iter().filter_map(|(id, _)| turns.get(id)).map(|turn| turn.due).min();
            let next = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The sender lives as long as this.
                _ = changes.changed() => {}
                () = next => {}
            }
        }
    }

    /// Asks servers, given by identity and holder. Returns whether each was learnt.
    async fn ask(&self, servers: Vec<(String, String)>) -> Vec<(String, bool)> {
        let addresses = self.leases.addresses().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the addresses of other servers cannot be read");
            Default::default()
        });
        let asked = servers.into_iter().map(|(id, holder)| {
            let address = addresses.get(&id).copied();
            async move {
                let is_learnt = self.ask_one(&id, holder, address).await;
                (id, is_learnt)
            }
        });
        stream::iter(asked).buffer_unordered(AT_A_TIME).collect().await
    }

    async fn ask_one(&self, id: &str, holder: String, address: Option<SocketAddr>) -> bool {
        let Some(address) = address else {
            // A server has its identity before its address when it starts, and after a crash.
            self.metrics.count_sync_error(SyncError::HostPortResolution);
            return false;
        };
        let known = self.known();
        if known.len() >= MAX_PEERS && !known.contains_key(id) {
            tracing::warn!(
                id,
                "there are more than {MAX_PEERS} other servers: this one is not asked for its resources"
            );
            return false;
        }
        match self.documents(address).await {
            Ok(document) => {
                tracing::info!(id, %address, "learnt the resources of another server");
                let document = Arc::new(document);
                self.learn(|known| drop(known.insert(id.to_owned(), Known { holder, document })));
                true
            }
            Err(error) => {
                self.metrics.count_sync_error(SyncError::FetchDiscovery);
                tracing::warn!(id, error, "the resources of another server are unknown");
                false
            }
        }
    }

    /// Fetches and reads the documents of a server.
    async fn documents(&self, address: SocketAddr) -> Result<PeerDocument, String> {
        let client = self.client.current();
        let mut documents = Vec::new();
        for path in ["/api", "/apis"] {
            let url = format!("https://{address}{path}");
            let answer = fetch(&client, &url, headers()?, TIMEOUT, MAX_SIZE).await?;
            self.metrics.count_rerouted(answer.status, None);
            if answer.status != 200 {
                return Err(format!("{url}: discovery request failed with status: {}", answer.status));
            }
            documents.push(answer.body);
        }
        beside(move || PeerDocument::read(&documents)).await
    }
}

fn headers() -> Result<HeaderMap, String> {
    let user = UserInfo {
        name: USER.to_owned(),
        uid: USER.to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    headers.insert(PEER_PROXIED, TRUE);
    remote_user::set(&mut headers, &user)?;
    Ok(headers)
}

/// The delay after so many failures, which doubles with each.
fn delay(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(30))).min(LONGEST_DELAY)
}
