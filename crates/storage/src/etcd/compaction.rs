//! Compaction, by one of the servers that share a cluster.
//!
//! The servers meet at one key, as those of Kubernetes do, so that ours and theirs can share a cluster. Its value is the
//! revision that was last compacted, its version counts the rounds. Once an interval each server tries to write the
//! revision it saw an interval ago, expecting the version it saw then. The one who succeeds compacts; the others learn the
//! version. Whoever lags or dies is succeeded by another after an interval.

use super::{
    client::{CallError, CallKind, Client},
    feed::Feed,
    proto::{
        self, CompactionRequest, Compare, CompareTarget, PutRequest, RangeRequest, Request, RequestOp,
        Response, TargetUnion, TxnRequest, TxnResponse, path,
    },
};
use crate::{CompactionRound, Revision, StorageError};
use bytes::Bytes;

/// The key, which is below no prefix.
const KEY: Bytes = Bytes::from_static(b"compact_rev_key");

pub(super) async fn compact(client: &Client, feed: &Feed, revision: Revision) -> Result<(), StorageError> {
    let request = CompactionRequest { revision: proto::signed(revision) };
    // It may be sent twice: the second one changes nothing.
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
        let (compacted, number) = others(answer);
        // Whatever wrote it there: what has not happened is not compacted.
        if compacted <= revision {
            feed.note_compacted(compacted);
        }
        return Ok(CompactionRound { revision, number });
    }
    // The first round only learns where the next one begins.
    if last.revision > Revision(0) {
        compact(client, feed, last.revision).await?;
        tracing::debug!(revision = %last.revision, "compacted etcd");
    }
    Ok(CompactionRound { revision, number: last.number + 1 })
}

/// What another server has compacted, and its number of the round, which the transaction found in the key.
fn others(answer: TxnResponse) -> (Revision, i64) {
    let key = match answer.responses.into_iter().next().and_then(|response| response.response) {
        Some(Response::Range(range)) => range.kvs.into_iter().next(),
        _ => None,
    };
    let Some(key) = key else { return (Revision(0), 0) };
    let revision = std::str::from_utf8(&key.value).ok().and_then(|text| text.parse().ok());
    (Revision(revision.unwrap_or_default()), key.version)
}
