//! One watch of etcd: opens it, reads it, detects its end.
//!
//! Its range depends on the member. A member whose progress responses are reliable gets a watch of the prefix alone.
//! With an older member the watch covers all keys, and events outside the prefix are dropped: each revision has at
//! least one event, so the last event shows the revision that is reached, without progress responses.

use super::{
    client::{CallError, CallKind, Client},
    connection::Connection,
    kv,
    proto::{
        self, Event, EventType, RangeRequest, RangeResponse, WatchCreateRequest, WatchRequest,
        WatchRequestUnion, WatchResponse, path,
    },
};
use crate::{EventKind, Revision, StorageEvent};
use std::time::Duration;
use tokio::{sync::mpsc, time::timeout};
use tonic::Streaming;

/// The time-out of creating a watch.
const CREATE: Duration = Duration::from_secs(5);

/// An open watch.
pub(super) struct Follow {
    member: usize,
    connection: Connection,
    requests: mpsc::UnboundedSender<WatchRequest>,
    responses: Streaming<WatchResponse>,
    /// The parts received so far of a fragmented response.
    parts: Vec<Event>,
    /// The member's revision when it created the watch.
    created_at: Revision,
}

/// The next result of a watch.
pub(super) enum Step {
    /// All events up to the revision of the last one.
    Events(Vec<Event>),
    /// All events up to this revision have been delivered.
    Progress(Revision),
}

/// The reason why a watch ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Its start is compacted; the oldest revision that is kept.
    Compacted(Revision),
    /// The connection failed; the feed opens another watch, perhaps with another member.
    Broken(String),
    /// The cluster's revision has decreased: it lost writes, or was restored.
    Reverted(Revision),
}

impl Follow {
    /// Opens a watch of the events after `after` within the prefix.
    pub(super) async fn open(client: &Client, prefix: &str, after: Revision) -> Result<Follow, Ended> {
        let (member, connection) = client.connection().await.map_err(Ended::Broken)?;
        let opened = timeout(CREATE, Follow::create(member, connection.clone(), prefix, after)).await;
        let opened = opened.unwrap_or_else(|_| {
            connection.give_up();
            Err(Ended::Broken("creating a watch timed out".to_owned()))
        });
        if let Err(Ended::Broken(_)) = &opened {
            client.pass_over(member);
        }
        let follow = opened?;
        if follow.created_at < after {
            // Usually the member is only behind the others; a linearizable read is not.
            match client.current_revision().await {
                Ok(current) if current < after => return Err(Ended::Reverted(current)),
                Ok(_) => {}
                Err(error) => return Err(Ended::Broken(error.to_string())),
            }
        }
        Ok(follow)
    }

    async fn create(
        member: usize,
        connection: Connection,
        prefix: &str,
        after: Revision,
    ) -> Result<Follow, Ended> {
        let (requests, receiver) = mpsc::unbounded_channel();
        let (key, range_end) = kv::range(if connection.trusted_progress { prefix } else { "" }, None);
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: proto::signed(after).saturating_add(1),
            prev_kv: true,
            fragment: true,
        };
        send(&requests, WatchRequestUnion::Create(create));
        let responses = connection.watch(receiver).await.map_err(|error| Ended::Broken(error.to_string()))?;
        let mut follow =
            Follow { member, connection, requests, responses, parts: Vec::new(), created_at: Revision(0) };
        match follow.response().await? {
            response if response.created => {
                follow.created_at = proto::revision(response.header.as_ref());
                Ok(follow)
            }
            _ => Err(Ended::Broken("a watch began without having been created".to_owned())),
        }
    }

    /// Requests progress, from members whose progress responses are reliable.
    pub(super) fn ask_for_progress(&self) {
        if self.connection.trusted_progress {
            send(&self.requests, WatchRequestUnion::Progress(proto::Nothing {}));
        }
    }

    /// Stops using a member that does not send the events it should.
    pub(super) fn give_up(&self, client: &Client) {
        self.connection.give_up();
        client.pass_over(self.member);
    }

    /// The next result. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Step, Ended> {
        loop {
            let mut response = self.response().await?;
            self.parts.append(&mut response.events);
            if response.fragment {
                continue;
            }
            if !self.parts.is_empty() {
                return Ok(Step::Events(std::mem::take(&mut self.parts)));
            }
            if self.connection.trusted_progress && !response.created {
                return Ok(Step::Progress(proto::revision(response.header.as_ref())));
            }
        }
    }

    async fn response(&mut self) -> Result<WatchResponse, Ended> {
        match self.responses.message().await {
            Ok(Some(response)) if response.compact_revision > 0 => {
                Err(Ended::Compacted(Revision(proto::unsigned(response.compact_revision))))
            }
            Ok(Some(response)) if response.canceled => Err(Ended::Broken(response.cancel_reason)),
            Ok(Some(response)) => Ok(response),
            Ok(None) => Err(Ended::Broken("the member ended the watch".to_owned())),
            Err(status) => Err(Ended::Broken(status.message().to_owned())),
        }
    }
}

fn send(requests: &mpsc::UnboundedSender<WatchRequest>, request: WatchRequestUnion) {
    // When the receiver is gone, the stream has ended, and its other end reports that.
    let _ = requests.send(WatchRequest { request: Some(request) });
}

/// The revision of the last event.
pub(super) fn last_revision(events: &[Event]) -> Revision {
    events.last().map_or(Revision(0), event_revision)
}

fn event_revision(event: &Event) -> Revision {
    Revision(event.kv.as_ref().map_or(0, |kv| proto::unsigned(kv.mod_revision)))
}

/// Converts the events of a prefix after one revision up to another.
pub(super) async fn events(
    client: &Client,
    prefix: &str,
    events: Vec<Event>,
    after: Revision,
    until: Revision,
) -> Result<Vec<StorageEvent>, Ended> {
    let mut writes = Vec::with_capacity(events.len());
    for event in events {
        let revision = event_revision(&event);
        let Some(kv) = event.kv else { continue };
        if revision <= after || revision > until || !kv.key.starts_with(prefix.as_bytes()) {
            continue;
        }
        let (kind, kv) = if event.r#type == EventType::Delete as i32 {
            match event.prev_kv {
                Some(deleted) => (EventKind::Delete, deleted),
                None => (EventKind::Delete, before_delete(client, kv.key, revision).await?),
            }
        } else if kv.version == 1 {
            (EventKind::Create, kv)
        } else {
            (EventKind::Update, kv)
        };
        if let Some(kv) = kv::pair(kv) {
            writes.push(StorageEvent::Write { kind, revision, kv });
        }
    }
    Ok(writes)
}

/// Reads the deleted pair, where the event does not have it: etcd reads it when it sends the event, and omits it if
/// it was compacted by then.
async fn before_delete(
    client: &Client,
    key: bytes::Bytes,
    deleted: Revision,
) -> Result<proto::KeyValue, Ended> {
    let before = Revision(deleted.0.saturating_sub(1));
    let request = RangeRequest { key, revision: proto::signed(before).max(1), ..Default::default() };
    let answer: Result<RangeResponse, _> = client.call(CallKind::Read, path::RANGE, request).await;
    match answer.map(|answer| answer.kvs.into_iter().next()) {
        Ok(Some(kv)) => Ok(kv),
        Ok(None) | Err(CallError::Compacted) => Err(Ended::Compacted(deleted)),
        Err(error) => Err(Ended::Broken(error.into_storage().to_string())),
    }
}
