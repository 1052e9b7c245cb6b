//! The operations of a patch in the audit annotation.

use pintle_machinery::{
    Value,
    codec::json::{compact, encode_any, raw_members, write_string},
};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The JSON of the operations of a patch: the members of each in the order of their names, with values as the webhook
/// has written them. `patch` is the decoded `text`.
pub(super) fn annotated(text: &[u8], patch: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    match write_operations(&mut out, text) {
        Ok(()) => out,
        Err(_) => encode_any(patch),
    }
}

fn write_operations(out: &mut Vec<u8>, text: &[u8]) -> serde_json::Result<()> {
    let operations: Vec<&RawValue> = serde_json::from_slice(text)?;
    out.push(b'[');
    for (place, operation) in operations.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if operation.get() == "null" {
            out.extend_from_slice(b"null");
            continue;
        }
        // The last of members with one name counts.
        let members: BTreeMap<String, &RawValue> =
            raw_members(operation.get().as_bytes())?.into_iter().collect();
        out.push(b'{');
        for (place, (name, value)) in members.into_iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_string(out, &name);
            out.push(b':');
            out.extend_from_slice(&compact(value.get().as_bytes()));
        }
        out.push(b'}');
    }
    out.push(b']');
    Ok(())
}
