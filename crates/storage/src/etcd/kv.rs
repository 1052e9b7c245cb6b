//! Converts keys, ranges and transactions to etcd's messages.

use super::proto::{self, Compare, CompareTarget, Request, RequestOp, TargetUnion, TxnRequest};
use crate::{Key, KeyValue, Revision, ValueState};
use bytes::Bytes;

/// As a start: from the smallest key. As an end: to the end of all keys.
const EVERYTHING: Bytes = Bytes::from_static(b"\0");

/// The keys of a prefix after `start_after`, as a range: its first key, and the key after its last.
pub(super) fn range(prefix: &str, start_after: Option<&Key>) -> (Bytes, Bytes) {
    let first = match start_after {
        // The smallest greater key.
        Some(key) if key.as_str() >= prefix => [key.as_str().as_bytes(), b"\0"].concat().into(),
        _ if prefix.is_empty() => EVERYTHING,
        _ => Bytes::copy_from_slice(prefix.as_bytes()),
    };
    (first, prefix_end(prefix.as_bytes()))
}

/// The smallest key that is greater than all keys with the prefix.
fn prefix_end(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end.into();
        }
    }
    EVERYTHING
}

/// Converts a pair; `None` for a key that is not UTF-8, which no server of this kind writes.
///
/// The bytes are copied out of their message, or one value would keep the whole message in memory.
pub(super) fn pair(kv: proto::KeyValue) -> Option<KeyValue> {
    let Ok(key) = std::str::from_utf8(&kv.key) else {
        tracing::warn!(key = %kv.key.escape_ascii(), "a key in etcd is no text; it is left alone");
        return None;
    };
    Some(KeyValue {
        key: Key::new(key),
        value: Bytes::copy_from_slice(&kv.value).into(),
        state: ValueState::Current,
        create_revision: Revision(proto::unsigned(kv.create_revision)),
        mod_revision: Revision(proto::unsigned(kv.mod_revision)),
    })
}

/// A key's bytes.
pub(super) fn bytes(key: &Key) -> Bytes {
    Bytes::copy_from_slice(key.as_str().as_bytes())
}

/// A transaction: `success` if the key was last modified at `expected` (0: does not exist), else a read of the key's
/// pair if `else_read` is set.
pub(super) fn if_unchanged(key: Bytes, expected: Revision, success: Request, else_read: bool) -> TxnRequest {
    let compare = Compare {
        target: CompareTarget::Mod as i32,
        key: key.clone(),
        target_union: Some(TargetUnion::ModRevision(proto::signed(expected))),
    };
    let read = Request::Range(proto::RangeRequest { key, ..Default::default() });
    let operation = |request| RequestOp { request: Some(request) };
    TxnRequest {
        compare: vec![compare],
        success: vec![operation(success)],
        failure: if else_read { vec![operation(read)] } else { Vec::new() },
    }
}

/// The pair that the `failure` branch read.
pub(super) fn read_pair(answer: proto::TxnResponse) -> Option<proto::KeyValue> {
    match answer.responses.into_iter().next()?.response? {
        proto::Response::Range(range) => range.kvs.into_iter().next(),
        proto::Response::Put(_) | proto::Response::DeleteRange(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_the_prefix_and_nothing_else() {
        type Row = (&'static str, Option<&'static str>, &'static [u8], &'static [u8]);
        let rows: &[Row] = &[
            ("/r/", None, b"/r/", b"/r0"),
            ("/r/", Some("/r/a"), b"/r/a\0", b"/r0"),
            ("/r/", Some("/a"), b"/r/", b"/r0"),
            ("", None, b"\0", b"\0"),
            ("", Some("/a"), b"/a\0", b"\0"),
            ("/\u{7f}", None, b"/\x7f", b"/\x80"),
        ];
        for (prefix, start_after, first, end) in rows {
            let start_after = start_after.map(Key::new);
            let (key, range_end) = range(prefix, start_after.as_ref());
            assert_eq!((&*key, &*range_end), (*first, *end), "{prefix:?} after {start_after:?}");
        }
        assert_eq!(&*prefix_end(b"a\xff\xff"), b"b");
        assert_eq!(&*prefix_end(b"\xff"), b"\0");
    }
}
