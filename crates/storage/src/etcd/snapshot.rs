//! The cluster as the source of saves and the target of restores.
//!
//! This is not [`EtcdStorage`](super::EtcdStorage), which watches its prefix and delays a write until its event has
//! arrived: here there are no watches. Every write may be sent twice, because a restore compares all keys at the end;
//! so a failed member only costs time.
//!
//! Expiry: a save requests the remaining time of each lease once. A restore grants one lease for all keys that expire
//! within the same half minute, more if they are many; so keys may live up to half a minute longer.

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

/// Keys that expire within this number of milliseconds share a lease.
const SHARED: u64 = 30_000;
/// The largest number of keys of a lease: etcd deletes them in one transaction.
const MAX_OBJECTS: u64 = 1000;
/// The longest lease that etcd accepts, in seconds: 285 years.
const MAX_TTL_SECONDS: u64 = 9_000_000_000;

/// An etcd cluster that a snapshot is saved from or restored into.
pub struct EtcdSnapshotStore {
    client: Client,
    /// The expiry of the leases read so far, in milliseconds since 1970.
    expirations: Mutex<HashMap<i64, u64>>,
    /// The latest lease of each half minute. Held while one is granted.
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
    /// When the options are invalid, or when the cluster does not answer in time.
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
            // The oldest kept revision is not needed here.
            (Err(CallError::Compacted), Some(revision)) => {
                Err(StorageError::Compacted { compacted: Revision(revision.0 + 1) })
            }
            (Err(error), _) => Err(error.into_storage()),
        }
    }

    /// A transaction that may be sent twice.
    async fn transact(&self, transaction: TxnRequest) -> Result<TxnResponse, CallError> {
        self.client.call(CallKind::Read, path::TXN, transaction).await
    }

    /// The expiry of a lease's keys, in milliseconds since 1970; zero is never.
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
        // A lease that does not exist any more deleted its keys after the saved revision.
        let expires = now_milliseconds().saturating_add(proto::unsigned(answer.ttl).saturating_mul(1000));
        self.expirations.lock().insert(lease, expires);
        Ok(expires)
    }

    /// The lease for one more key with this expiry.
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
            value: kv.value.bytes,
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
                    // The lease expired while this process was suspended.
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
                // Compacted already: by an earlier attempt of this call, or by another server.
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
