//! Compaction by one of the servers that share a cluster.
//!
//! The servers coordinate through one key, the one that kube-apiserver uses, so that both can share a cluster. Its
//! value is the last compacted revision, its version counts the rounds. Once an interval each server tries to write
//! the revision it read an interval ago, if the key still has the version it had then. The server that succeeds
//! compacts; the others read the new version. If a server lags or dies, another one compacts after an interval.

use super::{
    client::{CallError, CallKind, Client},
    compaction_key::{KEY, compacted_revision},
    feed::Feed,
    kv::read_pair,
    proto::{
        self, CompactionRequest, Compare, CompareTarget, PutRequest, RangeRequest, Request, RequestOp,
        TargetUnion, TxnRequest, TxnResponse, path,
    },
};
use crate::{CompactionRound, Revision, StorageError};

pub(super) async fn compact(client: &Client, feed: &Feed, revision: Revision) -> Result<(), StorageError> {
    let request = CompactionRequest { revision: proto::signed(revision) };
    // It may be sent twice: the second call has no effect.
    let answer: Result<proto::Nothing, _> = client.call(CallKind::Read, path::COMPACT, request).await;
    match answer {
        Ok(_) => feed.note_compacted(revision),
        Err(CallError::Compacted) => {}
        Err(CallError::FutureRevision) => {
            let current = client.current_revision().await?;
            return Err(StorageError::FutureRevision { requested: revision, current });
        }
        Err(error) => return Err(error.into_storage()),
    }
    Ok(())
}

pub(super) async fn round(
    client: &Client,
    feed: &Feed,
    last: CompactionRound,
) -> Result<CompactionRound, StorageError> {
    let operation = |request| vec![RequestOp { request: Some(request) }];
    let put = PutRequest { key: KEY, value: last.revision.to_string().into(), lease: 0 };
    let transaction = TxnRequest {
        compare: vec![Compare {
            target: CompareTarget::Version as i32,
            key: KEY,
            target_union: Some(TargetUnion::Version(last.number)),
        }],
        success: operation(Request::Put(put)),
        failure: operation(Request::Range(RangeRequest { key: KEY, ..Default::default() })),
    };
    let answer: TxnResponse =
        client.call(CallKind::Write, path::TXN, transaction).await.map_err(CallError::into_storage)?;
    let revision = proto::revision(answer.header.as_ref());
    if !answer.succeeded {
        let found = read_pair(answer);
        if let Some(compacted) = found.as_ref().and_then(compacted_revision) {
            feed.note_compacted(compacted);
        }
        return Ok(CompactionRound { revision, number: found.map_or(0, |kv| kv.version) });
    }
    // The first round only records the start of the next one.
    if last.revision > Revision(0) {
        compact(client, feed, last.revision).await?;
        tracing::debug!(revision = %last.revision, "compacted etcd");
    }
    Ok(CompactionRound { revision, number: last.number + 1 })
}
