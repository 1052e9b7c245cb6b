//! The keys that expire.

use crate::{Key, Revision};
use std::{
    collections::BTreeSet,
    time::{SystemTime, UNIX_EPOCH},
};

/// The keys to delete, by the time of their expiry in milliseconds since 1970, with the revision of the write that set
/// it: a later write of the key has its own expiry, or none.
pub(super) type Expirations = BTreeSet<(u64, Key, Revision)>;

/// Milliseconds since 1970, at least 1.
pub(super) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX >> 1).clamp(1, u64::MAX >> 1)
}
