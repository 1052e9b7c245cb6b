//! The engine on an etcd cluster, over gRPC. `docs/storage.md` argues why its answers are correct.
//!
//! - [`client`]: the cluster as one server, over a [`connection`] to one member at a time; [`proto`]: the messages.
//! - [`kv`]: keys, ranges and transactions in etcd's terms; [`lease`]: expiry of keys.
//! - [`feed`]: ONE watch of etcd ([`follow`]) from which the hub serves all watches; [`watch`]: history from etcd,
//!   then the hub. The cluster sends each event once, however many watches there are. [`own_writes`]: the payloads of
//!   this server's writes, for their events.
//! - [`revision`]: the latest revision, read once for all concurrent callers. A consistent read from a cache costs no
//!   more than that.
//! - [`compaction`]: selects the server that compacts, when several could.
//! - [`mod@snapshot`]: the cluster as the source of saves and the target of restores.

mod client;
mod compaction;
mod compaction_key;
mod connection;
mod dialer;
mod feed;
mod follow;
mod kv;
mod lease;
mod metrics;
mod options;
mod own_writes;
mod proto;
mod revision;
mod snapshot;
mod watch;

pub use dialer::{EtcdConnection, EtcdDialer};
pub use metrics::EtcdObserver;
pub use options::{EtcdOpenError, EtcdOptions};
pub use snapshot::EtcdSnapshotStore;

use crate::{
    BoxFuture, CompactionRound, GetResponse, Key, ListRequest, ListResponse, Payload, Revision, Storage,
    StorageError, WatchRequest, WatchStream, WriteError, replay::ReplayWatch,
};
use bytes::Bytes;
use client::{CallError, CallKind, Client};
use feed::Feed;
use follow::{Ended, Follow, Step};
use lease::Leases;
use proto::{RangeRequest, RangeResponse, Request, TxnResponse, path};
use revision::CurrentRevision;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::timeout};
use watch::EtcdHistory;

/// The time for which a write that etcd has acknowledged waits for its event, so that the event reaches the watches
/// first.
const EVENT_PATIENCE: Duration = Duration::from_secs(1);
/// The time for which a read of the latest revision waits for the events up to it.
const REVISION_PATIENCE: Duration = Duration::from_secs(1);
/// The time for which a progress request waits for the events.
const PROGRESS_PATIENCE: Duration = Duration::from_secs(30);
/// The size of the pages of lists, in bytes, approximately.
const PAGE_BYTES: usize = 4 << 20;
const PAGE_PAIRS: (usize, usize) = (10, 10_000);
const FIRST_PAGE_PAIRS: usize = 500;

/// The durable engine for several machines: an etcd cluster.
///
/// Dropping it without [`Storage::close`] ends its watches.
pub struct EtcdStorage {
    client: Arc<Client>,
    feed: Arc<Feed>,
    following: JoinHandle<()>,
    leases: Leases,
    revision: Arc<CurrentRevision>,
    closed: AtomicBool,
}

impl EtcdStorage {
    /// Connects to the cluster.
    ///
    /// # Errors
    /// When the options are invalid, or when the cluster does not answer in time.
    pub async fn open(options: EtcdOptions) -> Result<EtcdStorage, EtcdOpenError> {
        let patience = options.open_patience;
        let client = Arc::new(Client::new(options)?);
        let unavailable = |error: StorageError| EtcdOpenError::Unavailable(error.to_string());
        let connecting = async {
            loop {
                match client.current_revision().await {
                    Ok(revision) => break revision,
                    Err(error) => tracing::warn!(%error, "etcd does not answer yet"),
                }
            }
        };
        let Ok(revision) = timeout(patience, connecting).await else {
            let why = client.connection().await.err();
            return Err(EtcdOpenError::Unavailable(
                why.unwrap_or_else(|| "it did not answer in time".to_owned()),
            ));
        };
        let feed = Feed::new(Arc::clone(&client), revision);
        let first = loop {
            match Follow::open(&client, &client.options().prefix, revision).await {
                Ok(follow) => break follow,
                // A compaction between reading the revision and starting the watch is unlikely.
                Err(Ended::Compacted(compacted)) => {
                    return Err(unavailable(StorageError::Compacted { compacted }));
                }
                Err(Ended::Reverted(_)) => {
                    return Err(EtcdOpenError::Unavailable("its revision goes back".to_owned()));
                }
                Err(Ended::Broken(error)) if error.contains("permission denied") => {
                    return Err(EtcdOpenError::Unavailable(format!("watching is not allowed: {error}")));
                }
                Err(Ended::Broken(error)) => {
                    tracing::warn!(%error, "cannot watch etcd yet");
                    client.current_revision().await.map_err(unavailable)?;
                }
            }
        };
        let following = tokio::spawn(Arc::clone(&feed).run(first));
        Ok(EtcdStorage {
            client,
            feed,
            following,
            leases: Leases::default(),
            revision: Arc::default(),
            closed: AtomicBool::new(false),
        })
    }

    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) { Err(StorageError::Closed) } else { Ok(()) }
    }

    /// Awaits the answer to a request, which is observed.
    async fn observed<T, E>(
        &self,
        operation: &'static str,
        key: &str,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let observer = self.client.options().observer.as_deref();
        metrics::observed(observer, operation, key, answer).await
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, CallError> {
        self.client.call(CallKind::Read, path::RANGE, request).await
    }

    async fn read(&self, key: &Key) -> Result<GetResponse, StorageError> {
        let request = RangeRequest { key: kv::bytes(key), ..Default::default() };
        let answer = self.range(request).await.map_err(CallError::into_storage)?;
        let revision = proto::revision(answer.header.as_ref());
        Ok(GetResponse { kv: answer.kvs.into_iter().next().and_then(kv::pair), revision })
    }

    /// Writes a value, with a lease if it has a time to live.
    async fn put(
        &self,
        key: &Key,
        value: &Bytes,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> Result<TxnResponse, StorageError> {
        let mut again = true;
        loop {
            let lease = match ttl {
                Some(ttl) => self.leases.lease(&self.client, ttl).await?,
                None => 0,
            };
            let put = proto::PutRequest { key: kv::bytes(key), value: value.clone(), lease };
            // The error of a create does not contain the pair.
            let else_read = expected != Revision(0);
            match self.transact(key, expected, Request::Put(put), else_read).await {
                // The lease was revoked, or expired while this process was suspended.
                Err(CallError::LeaseNotFound) if again => {
                    again = false;
                    self.leases.forget(lease).await;
                }
                result => return result.map_err(CallError::into_storage),
            }
        }
    }

    async fn transact(
        &self,
        key: &Key,
        expected: Revision,
        success: Request,
        else_read: bool,
    ) -> Result<TxnResponse, CallError> {
        let transaction = kv::if_unchanged(kv::bytes(key), expected, success, else_read);
        self.client.call(CallKind::Write, path::TXN, transaction).await
    }

    /// The revision of a successful write, once its event is queued to the watches.
    async fn written(&self, answer: &TxnResponse) -> Revision {
        let revision = proto::revision(answer.header.as_ref());
        if !self.feed.reach_event(revision, EVENT_PATIENCE).await {
            tracing::debug!(%revision, "a write is acknowledged before its event came");
        }
        revision
    }

    /// Converts the response of a write that expects the key at a revision.
    async fn changed(&self, answer: Result<TxnResponse, StorageError>) -> Result<Revision, WriteError> {
        let answer = answer?;
        if answer.succeeded {
            return Ok(self.written(&answer).await);
        }
        Err(WriteError::Conflict { current: kv::read_pair(answer).and_then(kv::pair) })
    }

    /// The conflict for an expected revision of 0: no key has it, and for etcd it would mean "does not exist".
    async fn conflict_with_nothing(&self, key: &Key) -> Result<Revision, WriteError> {
        let current = self.read(key).await?.kv;
        Err(WriteError::Conflict { current })
    }

    async fn list(&self, request: &ListRequest) -> Result<ListResponse, StorageError> {
        let (mut key, range_end) = kv::range(&request.prefix, request.start_after.as_ref());
        // Nothing existed before etcd's first revision, and 0 would mean the latest one.
        let mut revision = request.revision.map(|revision| revision.max(Revision(1)));
        let mut items = Vec::new();
        let mut page = FIRST_PAGE_PAIRS;
        loop {
            let limit = match request.limit {
                0 => page,
                limit => page.min(limit.saturating_sub(items.len())),
            };
            let read = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                limit: i64::try_from(limit).unwrap_or(i64::MAX),
                revision: revision.map_or(0, proto::signed),
                // A past state is the same on every member that has it, so the read need not be linearizable.
                serializable: revision.is_some(),
                ..Default::default()
            };
            let answer = self.page(read, revision).await?;
            let at = *revision.get_or_insert(proto::revision(answer.header.as_ref()));
            let bytes: usize = answer.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
            page = (limit * PAGE_BYTES / bytes.max(1)).clamp(PAGE_PAIRS.0, PAGE_PAIRS.1);
            let last = answer.kvs.last().map(|kv| [&kv.key, &b"\0"[..]].concat().into());
            items.extend(answer.kvs.into_iter().filter_map(kv::pair));
            let enough = request.limit > 0 && items.len() >= request.limit;
            match last {
                Some(last) if answer.more && !enough => key = last,
                _ => return Ok(ListResponse { items, more: answer.more, revision: at }),
            }
        }
    }

    async fn count_range(&self, request: &ListRequest) -> Result<usize, StorageError> {
        let (key, range_end) = kv::range(&request.prefix, request.start_after.as_ref());
        let revision = request.revision.map(|revision| revision.max(Revision(1)));
        let read = RangeRequest {
            key,
            range_end,
            revision: revision.map_or(0, proto::signed),
            serializable: revision.is_some(),
            count_only: true,
            ..Default::default()
        };
        Ok(usize::try_from(self.page(read, revision).await?.count).unwrap_or_default())
    }

    async fn page(
        &self,
        mut read: RangeRequest,
        revision: Option<Revision>,
    ) -> Result<RangeResponse, StorageError> {
        let mut result = self.range(read.clone()).await;
        if result == Err(CallError::FutureRevision) && read.serializable {
            // The member may be behind the others; a linearizable read makes it catch up.
            read.serializable = false;
            result = self.range(read).await;
        }
        match (result, revision) {
            (Err(CallError::Compacted), Some(revision)) => Err(self.compacted_beyond(revision).await),
            (Err(CallError::FutureRevision), Some(requested)) => {
                let current = self.client.current_revision().await?;
                Err(StorageError::FutureRevision { requested, current })
            }
            (result, _) => result.map_err(CallError::into_storage),
        }
    }

    /// The error for a compacted revision. etcd reports the oldest kept revision only to watches.
    async fn compacted_beyond(&self, revision: Revision) -> StorageError {
        let compacted = self.feed.compacted();
        if compacted > revision {
            return StorageError::Compacted { compacted };
        }
        let at_least = Revision(revision.0 + 1);
        let told = async {
            let mut follow = Follow::open(&self.client, &self.client.options().prefix, Revision(0)).await?;
            loop {
                if let Step::Events(_) = follow.next().await? {
                    return Ok::<_, Ended>(());
                }
            }
        };
        let compacted = match timeout(REVISION_PATIENCE, told).await {
            Ok(Err(Ended::Compacted(compacted))) => compacted.max(at_least),
            _ => at_least,
        };
        self.feed.note_compacted(compacted);
        StorageError::Compacted { compacted }
    }

    async fn start_watch(&self, mut request: WatchRequest) -> Result<WatchStream, StorageError> {
        self.check_open()?;
        let prefix = &self.client.options().prefix;
        if request.prefix.len() < prefix.len() {
            request.prefix.clone_from(prefix);
        }
        let (live, history) = self.feed.watch(&request.prefix, request.after)?;
        if history.is_some() {
            // A compacted start has to be reported now, not by the first event.
            let probe = RangeRequest {
                revision: proto::signed(request.after.max(Revision(1))),
                ..self.client.probe()
            };
            match self.range(probe).await {
                Ok(_) | Err(CallError::FutureRevision) => {}
                Err(CallError::Compacted) => return Err(self.compacted_beyond(request.after).await),
                Err(error) => return Err(error.into_storage()),
            }
        }
        Ok(Box::new(ReplayWatch::new(EtcdHistory::new(Arc::clone(&self.client)), live, request, history)))
    }
}

impl Drop for EtcdStorage {
    fn drop(&mut self) {
        self.following.abort();
        self.feed.hub().close(None);
    }
}

impl Storage for EtcdStorage {
    fn create(
        &self,
        key: &Key,
        value: Payload,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            self.check_open()?;
            let _own_write = self.feed.own_writes().begin(&key, &value);
            let put = self.put(&key, value.stored_form(), Revision(0), ttl);
            match self.observed("create", key.as_str(), put).await? {
                answer if answer.succeeded => Ok(self.written(&answer).await),
                _ => Err(WriteError::KeyExists),
            }
        })
    }

    fn update(
        &self,
        key: &Key,
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            self.check_open()?;
            if expected == Revision(0) {
                return self.conflict_with_nothing(&key).await;
            }
            let _own_write = self.feed.own_writes().begin(&key, &value);
            let put = self.put(&key, value.stored_form(), expected, ttl);
            self.changed(self.observed("update", key.as_str(), put).await).await
        })
    }

    fn delete(&self, key: &Key, expected: Revision) -> BoxFuture<'_, Result<Revision, WriteError>> {
        let key = key.clone();
        Box::pin(async move {
            self.check_open()?;
            if expected == Revision(0) {
                return self.conflict_with_nothing(&key).await;
            }
            let delete = Request::DeleteRange(proto::DeleteRangeRequest { key: kv::bytes(&key) });
            let answer =
                self.observed("delete", key.as_str(), self.transact(&key, expected, delete, true)).await;
            self.changed(answer.map_err(CallError::into_storage)).await
        })
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<GetResponse, StorageError>> {
        let key = key.clone();
        Box::pin(async move {
            self.check_open()?;
            self.observed("get", key.as_str(), self.read(&key)).await
        })
    }

    fn get_list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            self.observed("list", &request.prefix, self.list(&request)).await
        })
    }

    fn count(&self, request: ListRequest) -> BoxFuture<'_, Result<usize, StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            self.observed("listWithCount", &request.prefix, self.count_range(&request)).await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        Box::pin(self.start_watch(request))
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            let revision = self.revision.read(&self.client).await?;
            if !self.feed.reach(revision, REVISION_PATIENCE).await {
                self.feed.hub().doubt(revision);
            }
            Ok(revision)
        })
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            let (feed, client, revision) =
                (Arc::clone(&self.feed), Arc::clone(&self.client), Arc::clone(&self.revision));
            tokio::spawn(async move {
                if let Ok(revision) = revision.read(&client).await
                    && feed.reach(revision, PROGRESS_PATIENCE).await
                {
                    feed.hub().progress();
                }
            });
            Ok(())
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            compaction::compact(&self.client, &self.feed, revision).await
        })
    }

    fn compacted_revision(&self) -> Revision {
        self.feed.compacted()
    }

    fn compact_periodically(
        &self,
        last: CompactionRound,
    ) -> BoxFuture<'_, Result<CompactionRound, StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            compaction::round(&self.client, &self.feed, last).await
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            match self.range(self.client.probe()).await {
                Ok(_) => Ok(()),
                Err(error) => {
                    let error = error.into_storage();
                    Err(StorageError::Engine(format!("error getting data from etcd: {error}")))
                }
            }
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(async move {
            self.check_open()?;
            let status: Result<proto::StatusResponse, _> =
                self.client.call(CallKind::Read, path::STATUS, proto::Nothing {}).await;
            Ok(proto::unsigned(status.map_err(CallError::into_storage)?.db_size))
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            self.closed.store(true, Ordering::Release);
            self.following.abort();
            self.feed.hub().close(None);
            Ok(())
        })
    }
}
