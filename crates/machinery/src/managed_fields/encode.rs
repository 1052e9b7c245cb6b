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
    if node.len() < 2 || node.keys().all(|element| is_plain(element)) {
        return node.iter().for_each(|(element, child)| visit(element, child));
    }
    let mut members: Vec<(&str, &Value)> =
        node.iter().map(|(element, child)| (element.as_str(), child)).collect();
    sort(&mut members);
    members.into_iter().for_each(|(element, child)| visit(element, child));
}

/// Brings elements, which are sorted by their text, into the order of path elements.
pub(super) fn sort<K: AsRef<str>, V>(elements: &mut Vec<(K, V)>) {
    if elements.len() < 2 || elements.iter().all(|(element, _)| is_plain(element.as_ref())) {
        return;
    }
    let parse = |element: &K| PathElement::parse(element.as_ref()).ok().flatten();
    let mut parsed: Vec<_> =
        elements.drain(..).map(|(element, value)| (parse(&element), element, value)).collect();
    parsed.sort_by(|(left, a, _), (right, b, _)| {
        path_element::order((a.as_ref(), left.as_ref()), (b.as_ref(), right.as_ref()))
    });
    elements.extend(parsed.into_iter().map(|(_, element, value)| (element, value)));
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
