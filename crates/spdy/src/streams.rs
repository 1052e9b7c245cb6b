//! The open streams of a session.

use crate::{OpenError, role::Role};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};
use tokio::sync::{mpsc, oneshot};

/// The most open streams of a session.
pub const MAX_STREAMS: usize = 1024;
/// How many pieces of a stream wait for its reader.
const QUEUE: usize = 1;
/// The largest number of a stream.
const MAX_ID: u32 = 0x7fff_ffff;

/// A piece of a stream's data. It has a box since a channel has room for 32 values from the beginning.
pub(crate) type Piece = Box<Bytes>;

/// How the peer's direction of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    Finished,
    Reset,
    SessionEnded,
}

/// The open streams of a session.
#[derive(Debug)]
pub(crate) struct Streams(Mutex<Table>);

#[derive(Debug)]
struct Table {
    entries: HashMap<u32, Entry>,
    next_own: u32,
    next_of_peer: u32,
    /// Whether the session has ended, so that there are no more streams.
    is_over: bool,
}

#[derive(Debug)]
struct Entry {
    /// `None` when the peer has ended its direction.
    data: Option<mpsc::Sender<Piece>>,
    /// How the peer's direction ended.
    end: Arc<OnceLock<StreamEnd>>,
    reply: Option<oneshot::Sender<Result<(), OpenError>>>,
    is_ended_here: bool,
}

/// The receiving side of a stream.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) data: mpsc::Receiver<Piece>,
    pub(crate) end: Arc<OnceLock<StreamEnd>>,
}

/// A stream of this side.
pub(crate) struct Opened {
    pub(crate) stream: u32,
    pub(crate) incoming: Incoming,
    /// The peer's answer.
    pub(crate) replied: oneshot::Receiver<Result<(), OpenError>>,
}

/// Whether a stream of the peer may begin.
pub(crate) enum Admission {
    Accepted(Incoming),
    /// The number is not that of a new stream of the peer.
    Invalid,
    TooMany,
}

impl Streams {
    pub(crate) fn new(role: Role) -> Streams {
        let (next_own, next_of_peer) = match role {
            Role::Client => (1, 2),
            Role::Server => (2, 1),
        };
        Streams(Mutex::new(Table { entries: HashMap::new(), next_own, next_of_peer, is_over: false }))
    }

    /// Adds a stream of this side.
    pub(crate) fn open(&self) -> Result<Opened, OpenError> {
        let mut table = self.0.lock();
        if table.is_over {
            return Err(OpenError::Ended);
        }
        if table.entries.len() >= MAX_STREAMS || table.next_own > MAX_ID {
            return Err(OpenError::TooMany);
        }
        let stream = table.next_own;
        table.next_own += 2;
        let (reply, replied) = oneshot::channel();
        let incoming = table.add(stream, Some(reply));
        Ok(Opened { stream, incoming, replied })
    }

    /// Adds a stream of the peer.
    pub(crate) fn admit(&self, stream: u32) -> Admission {
        let mut table = self.0.lock();
        if stream % 2 != table.next_of_peer % 2 || stream < table.next_of_peer {
            return Admission::Invalid;
        }
        table.next_of_peer = stream + 2;
        match table.is_over || table.entries.len() >= MAX_STREAMS {
            true => Admission::TooMany,
            false => Admission::Accepted(table.add(stream, None)),
        }
    }

    /// The number of the peer's latest stream.
    pub(crate) fn latest_of_peer(&self) -> u32 {
        self.0.lock().next_of_peer.saturating_sub(2)
    }

    /// The channel for the peer's data of a stream; `None` when nobody reads them.
    pub(crate) fn data(&self, stream: u32) -> Option<mpsc::Sender<Piece>> {
        self.0.lock().entries.get(&stream)?.data.clone()
    }

    pub(crate) fn reply(&self, stream: u32) {
        if let Some(entry) = self.0.lock().entries.get_mut(&stream)
            && let Some(reply) = entry.reply.take()
        {
            reply.send(Ok(())).ok();
        }
    }

    /// The peer has ended its direction.
    pub(crate) fn end_of_peer(&self, stream: u32) {
        let mut table = self.0.lock();
        let Some(entry) = table.entries.get_mut(&stream) else { return };
        entry.end.get_or_init(|| StreamEnd::Finished);
        entry.data = None;
        if entry.is_ended_here {
            table.entries.remove(&stream);
        }
    }

    /// This side has ended its direction. False when it had before, or the stream is gone.
    pub(crate) fn end_here(&self, stream: u32) -> bool {
        let mut table = self.0.lock();
        let Some(entry) = table.entries.get_mut(&stream) else { return false };
        let is_new = !std::mem::replace(&mut entry.is_ended_here, true);
        if entry.data.is_none() {
            table.entries.remove(&stream);
        }
        is_new
    }

    /// Whether this side may send.
    pub(crate) fn is_open_here(&self, stream: u32) -> bool {
        self.0.lock().entries.get(&stream).is_some_and(|entry| !entry.is_ended_here)
    }

    /// The peer has reset a stream.
    pub(crate) fn reset_by_peer(&self, stream: u32) {
        if let Some(mut entry) = self.0.lock().entries.remove(&stream) {
            entry.end.get_or_init(|| StreamEnd::Reset);
            if let Some(reply) = entry.reply.take() {
                reply.send(Err(OpenError::Reset)).ok();
            }
        }
    }

    /// Removes a stream that nobody uses any more. True when the peer has to be told.
    pub(crate) fn forget(&self, stream: u32) -> bool {
        let entry = self.0.lock().entries.remove(&stream);
        entry.is_some_and(|entry| {
            entry.end.get_or_init(|| StreamEnd::Reset);
            true
        })
    }

    /// Ends all streams, and returns the numbers of those that were open.
    pub(crate) fn end(&self) -> Vec<u32> {
        let mut table = self.0.lock();
        table.is_over = true;
        let entries = std::mem::take(&mut table.entries);
        for entry in entries.values() {
            entry.end.get_or_init(|| StreamEnd::SessionEnded);
        }
        entries.into_keys().collect()
    }
}

impl Table {
    fn add(&mut self, stream: u32, reply: Option<oneshot::Sender<Result<(), OpenError>>>) -> Incoming {
        let (sender, data) = mpsc::channel(QUEUE);
        let end = Arc::new(OnceLock::new());
        let entry = Entry { data: Some(sender), end: end.clone(), reply, is_ended_here: false };
        self.entries.insert(stream, entry);
        Incoming { data, end }
    }
}
