//! Encodes `FieldsV1`, in the order that Kubernetes writes it.
//!
//! Trees keep members sorted by text. For path elements this is the right order except for items with numbers in their
//! keys (port 80 comes before 443), rare characters, and missing keys.

use super::path_element::{self, PathElement};
use crate::{
    Map, Value,
    codec::json::{encode_any, write_string},
};

/// Appends a `FieldsV1`.
pub(crate) fn write_fields_v1(out: &mut Vec<u8>, fields: &Value) {
    let Some(members) = fields.as_object() else { return out.extend_from_slice(&encode_any(fields)) };
    out.push(b'{');
    let mut first = true;
    in_order(members, |element, child| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_string(out, element);
        out.push(b':');
        write_fields_v1(out, child);
    });
    out.push(b'}');
}

/// Calls `visit` for the members of a node, in the order of path elements.
pub(super) fn in_order<'v>(node: &'v Map, mut visit: impl FnMut(&'v str, &'v Value)) {
    let special = node.keys().filter(|element| !is_plain(element)).count();
    if special == 0 || node.len() < 2 {
        return node.iter().for_each(|(element, child)| visit(element, child));
    }
    let mut members: Vec<(&str, Option<PathElement>, &Value)> = node
        .iter()
        .map(|(element, child)| (element.as_str(), PathElement::parse(element).ok().flatten(), child))
        .collect();
    members
        .sort_by(|(a, left, _), (b, right, _)| path_element::order((a, left.as_ref()), (b, right.as_ref())));
    members.into_iter().for_each(|(element, _, child)| visit(element, child));
}

/// Whether an element sorts like its text: fields, and items with one text as key.
fn is_plain(element: &str) -> bool {
    match element.as_bytes() {
        [b'.'] | [b'f', ..] => true,
        [b'k' | b'v', b':', rest @ ..] => {
            let rest = rest.strip_prefix(b"{").unwrap_or(rest);
            let texts = rest.iter().filter(|byte| **byte == b'"').count();
            let values = if element.starts_with('k') { 4 } else { 2 };
            texts == values
                && rest.iter().all(|byte| *byte > b'!' && *byte != b'\\')
                && !rest.windows(2).any(|pair| matches!(pair, [b':', next] if *next != b'"'))
        }
        _ => false,
    }
}
