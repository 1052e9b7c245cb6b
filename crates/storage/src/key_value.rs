//! A key's value, and the requests and answers of reads.

use crate::{Key, Payload, Revision, ValueState};

/// One key's value at some revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Key,
    /// The value. In the event of a write of this process it is the payload that was written, in all other answers
    /// only the bytes, as they were written.
    pub value: Payload,
    /// The result of transforming the stored bytes back into the value.
    pub state: ValueState,
    /// The revision of the write that created the key (after its last deletion).
    pub create_revision: Revision,
    /// The revision of the write that set `value`.
    pub mod_revision: Revision,
}

/// The answer to [`crate::Storage::get`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetResponse {
    /// The pair, or `None` when the key does not exist at that revision.
    pub kv: Option<KeyValue>,
    /// The store's revision when it answered.
    pub revision: Revision,
}

/// The request of [`crate::Storage::get_list`].
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Only keys with this prefix, ordered bytewise.
    pub prefix: String,
    /// Only keys strictly after this one.
    pub start_after: Option<Key>,
    /// The maximum number of pairs; 0 means all.
    pub limit: usize,
    /// Reads the state at this revision; `None` is the latest state.
    pub revision: Option<Revision>,
}

/// The answer to [`crate::Storage::get_list`].
#[derive(Debug, Clone)]
pub struct ListResponse {
    /// The pairs, in key order.
    pub items: Vec<KeyValue>,
    /// Whether keys of the prefix remain after the last item.
    pub more: bool,
    /// The revision whose state was read (the request's, or the latest).
    pub revision: Revision,
}
