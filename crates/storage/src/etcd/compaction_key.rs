//! The key through which the servers of a cluster agree on compaction.

use super::proto::{self, KeyValue};
use crate::Revision;
use bytes::Bytes;

/// The key, which has no prefix.
pub(super) const KEY: Bytes = Bytes::from_static(b"compact_rev_key");

/// The revision that another server has compacted, if this is the compaction key's pair.
pub(super) fn compacted_revision(kv: &KeyValue) -> Option<Revision> {
    let text = std::str::from_utf8(&kv.value).ok().filter(|_| kv.key == KEY)?;
    let compacted = Revision(text.parse().ok()?);
    // A revision after the write cannot have been compacted.
    (compacted.0 < proto::unsigned(kv.mod_revision)).then_some(compacted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_compacted_is_believed_if_it_can_be() {
        let rows: &[(&[u8], &[u8], Option<u64>)] = &[
            (b"compact_rev_key", b"5", Some(5)),
            (b"compact_rev_key", b"0", Some(0)),
            (b"compact_rev_key", b"10", None),
            (b"compact_rev_key", b"many", None),
            (b"compact_rev_key", b"\xff", None),
            (b"other", b"5", None),
        ];
        for (key, value, expected) in rows {
            let [key, value] = [key, value].map(|bytes| Bytes::copy_from_slice(bytes));
            let kv = KeyValue { key, value, mod_revision: 10, ..KeyValue::default() };
            assert_eq!(compacted_revision(&kv), expected.map(Revision), "{kv:?}");
        }
    }
}
