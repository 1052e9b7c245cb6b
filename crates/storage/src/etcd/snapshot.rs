//! The cluster as what snapshots are saved from and restored into.
//!
//! Not [`EtcdStorage`](super::EtcdStorage), which watches all it may write and holds a write up until its event has come:
//! here nobody watches. Every write may be made twice, for a restore compares all keys in the end; so a failed member
//! costs time and nothing else.
//!
//! Times of expiry: a save asks each lease once for what is left of it. A restore grants one lease for all keys that
//! expire in the same half minute, or few more than one; keys live at most so much longer than they would have.

use super::{
    client::{CallError, CallKind, Client},
    kv,
    options::{EtcdOpenError, EtcdOptions},
    proto::{
        self, CompactionRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseTimeToLiveRequest,
        LeaseTimeToLiveResponse, PutRequest, RangeRequest, RangeResponse, Request, RequestOp, TxnRequest,
        TxnResponse, path,
    },
};
use crate::{
    BoxFuture, Key, KeyValue, ListRequest, ListResponse, Revision, StorageError,
    snapshot::{RestoreTarget, SnapshotPage, SnapshotRecord, SnapshotSource, now_milliseconds},
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio::time::timeout;

/// Keys that expire within so many milliseconds share a lease.
const SHARED: u64 = 30_000;
/// Unless they are so many: etcd deletes the keys of a lease in one transaction.
const MAX_OBJECTS: u64 = 1000;
/// etcd refuses longer leases: 285 years.
const MAX_TTL_SECONDS: u64 = 9_000_000_000;

/// An etcd cluster that a snapshot is saved from or restored into.
pub struct EtcdSnapshotStore {
    client: Client,
    /// When the leases that were asked for expire, in milliseconds since 1970.
    expirations: Mutex<HashMap<i64, u64>>,
    /// The newest lease for each half minute. Held while one is granted.
    leases: tokio::sync::Mutex<HashMap<u64, Lease>>,
}

#[derive(Clone, Copy)]
struct Lease {
    id: i64,
    objects: u64,
}

impl EtcdSnapshotStore {
    /// Connects to the cluster.
    ///
    /// # Errors
    /// When the options make no sense, and when the cluster does not answer in time.
    pub async fn connect(options: EtcdOptions) -> Result<EtcdSnapshotStore, EtcdOpenError> {
        let patience = options.open_patience;
        let client = Client::new(options)?;
        match timeout(patience, client.current_revision()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(EtcdOpenError::Unavailable(error.to_string())),
            Err(_) => return Err(EtcdOpenError::Unavailable("it did not answer in time".to_owned())),
        }
        Ok(EtcdSnapshotStore { client, expirations: Mutex::default(), leases: tokio::sync::Mutex::default() })
    }

    async fn range(
        &self,
        request: &ListRequest,
    ) -> Result<(Vec<proto::KeyValue>, bool, Revision), StorageError> {
        let (key, range_end) = kv::range(&request.prefix, request.start_after.as_ref());
        let read = RangeRequest {
            key,
            range_end,
            limit: i64::try_from(request.limit).unwrap_or(i64::MAX),
            revision: request.revision.map_or(0, proto::signed),
            ..Default::default()
        };
        let answer: Result<RangeResponse, CallError> =
            self.client.call(CallKind::Read, path::RANGE, read).await;
        match (answer, request.revision) {
            (Ok(answer), revision) => {
                let revision = revision.unwrap_or_else(|| proto::revision(answer.header.as_ref()));
                Ok((answer.kvs, answer.more, revision))
            }
            // Which revisions are left is of no use to anybody here.
            (Err(CallError::Compacted), Some(revision)) => {
                Err(StorageError::Compacted { compacted: Revision(revision.0 + 1) })
            }
            (Err(error), _) => Err(error.into_storage()),
        }
    }

    /// A transaction that may be made twice.
    async fn transact(&self, transaction: TxnRequest) -> Result<TxnResponse, CallError> {
        self.client.call(CallKind::Read, path::TXN, transaction).await
    }

    /// When a lease's keys expire; zero is never.
    async fn expires(&self, lease: i64) -> Result<u64, StorageError> {
        if lease == 0 {
            return Ok(0);
        }
        if let Some(expires) = self.expirations.lock().get(&lease) {
            return Ok(*expires);
        }
        let request = LeaseTimeToLiveRequest { id: lease };
        let answer: LeaseTimeToLiveResponse = self
            .client
            .call(CallKind::Read, path::LEASE_TIME_TO_LIVE, request)
            .await
            .map_err(CallError::into_storage)?;
        // A lease that is gone took its keys with it, after the revision that is saved.
        let expires = now_milliseconds().saturating_add(proto::unsigned(answer.ttl).saturating_mul(1000));
        self.expirations.lock().insert(lease, expires);
        Ok(expires)
    }

    /// The lease for one more key that expires at this time.
    async fn lease(&self, expires: u64) -> Result<i64, StorageError> {
        if expires == 0 {
            return Ok(0);
        }
        let slot = expires.div_ceil(SHARED);
        let mut leases = self.leases.lock().await;
        if let Some(lease) = leases.get_mut(&slot)
            && lease.objects < MAX_OBJECTS
        {
            lease.objects += 1;
            return Ok(lease.id);
        }
        let left = slot.saturating_mul(SHARED).saturating_sub(now_milliseconds());
        let seconds = left.div_ceil(1000).clamp(1, MAX_TTL_SECONDS);
        let request = LeaseGrantRequest { ttl: i64::try_from(seconds).unwrap_or(i64::MAX) };
        let granted: LeaseGrantResponse = self
            .client
            .call(CallKind::Read, path::LEASE_GRANT, request)
            .await
            .map_err(CallError::into_storage)?;
        if !granted.error.is_empty() {
            return Err(StorageError::Engine(granted.error));
        }
        leases.insert(slot, Lease { id: granted.id, objects: 1 });
        Ok(granted.id)
    }

    async fn record(&self, pair: proto::KeyValue) -> Result<Option<SnapshotRecord>, StorageError> {
        let expires = self.expires(pair.lease).await?;
        Ok(kv::pair(pair).map(|kv| SnapshotRecord {
            key: kv.key,
            value: kv.value,
            create_revision: kv.create_revision,
            mod_revision: kv.mod_revision,
            expires,
        }))
    }
}

impl SnapshotSource for EtcdSnapshotStore {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn page(&self, request: ListRequest) -> BoxFuture<'_, Result<SnapshotPage, StorageError>> {
        Box::pin(async move {
            let (pairs, more, revision) = self.range(&request).await?;
            let mut records = Vec::with_capacity(pairs.len());
            for pair in pairs {
                records.extend(self.record(pair).await?);
            }
            Ok(SnapshotPage { records, more, revision })
        })
    }
}

impl RestoreTarget for EtcdSnapshotStore {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<KeyValue>, StorageError>> {
        Box::pin(async move {
            let request = RangeRequest { key: kv::bytes(key), ..Default::default() };
            let answer: RangeResponse = self
                .client
                .call(CallKind::Read, path::RANGE, request)
                .await
                .map_err(CallError::into_storage)?;
            Ok(answer.kvs.into_iter().next().and_then(kv::pair))
        })
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListResponse, StorageError>> {
        Box::pin(async move {
            let (pairs, more, revision) = self.range(&request).await?;
            Ok(ListResponse { items: pairs.into_iter().filter_map(kv::pair).collect(), more, revision })
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        Box::pin(self.client.current_revision())
    }

    fn create_key<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expires: u64,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            let mut again = true;
            loop {
                let lease = self.lease(expires).await?;
                let put = PutRequest { key: kv::bytes(key), value: value.clone(), lease };
                let create = kv::if_unchanged(kv::bytes(key), Revision(0), Request::Put(put), false);
                match self.transact(create).await {
                    // It ran out while this process slept.
                    Err(CallError::LeaseNotFound) if again => {
                        again = false;
                        self.leases.lock().await.remove(&expires.div_ceil(SHARED));
                    }
                    result => return result.map(drop).map_err(CallError::into_storage),
                }
            }
        })
    }

    fn touch<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>> {
        let put = PutRequest { key: kv::bytes(key), value: Bytes::new(), lease: 0 };
        Box::pin(async move {
            self.transact(unconditionally(Request::Put(put))).await.map(drop).map_err(CallError::into_storage)
        })
    }

    fn remove<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StorageError>> {
        let delete = Request::DeleteRange(proto::DeleteRangeRequest { key: kv::bytes(key) });
        Box::pin(async move {
            self.transact(unconditionally(delete)).await.map(drop).map_err(CallError::into_storage)
        })
    }

    fn compact_history(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let request = CompactionRequest { revision: proto::signed(revision) };
            let compacted: Result<proto::Nothing, CallError> =
                self.client.call(CallKind::Read, path::COMPACT, request).await;
            match compacted {
                // By this call when it was made before, or by somebody else.
                Ok(_) | Err(CallError::Compacted) => Ok(()),
                Err(error) => Err(error.into_storage()),
            }
        })
    }
}

fn unconditionally(request: Request) -> TxnRequest {
    TxnRequest {
        compare: Vec::new(),
        success: vec![RequestOp { request: Some(request) }],
        failure: Vec::new(),
    }
}
