//! Encodes trees in the negotiated form.

use crate::base::negotiation::{Accepted, MediaType};
use bytes::{BufMut, Bytes, BytesMut};
use pintle_machinery::{
    Status, Value, ValueExt,
    codec::{cbor, json, protobuf, yaml},
};
use pintle_schema::{Schema, SchemaRef};
use std::sync::LazyLock;

static STATUS: LazyLock<SchemaRef<'static>> = LazyLock::new(|| {
    let name = "k8s.io/apimachinery/pkg/apis/meta/v1.Status";
    Schema::builtin().by_type_name(name).expect("the built-in schema has the types of meta.k8s.io")
});

/// Encodes a tree as a whole response.
///
/// # Errors
/// 500 when the tree does not fit the schema.
pub(crate) fn encode(tree: &Value, schema: SchemaRef<'_>, accepted: &Accepted) -> Result<Bytes, Status> {
    Ok(match accepted.media_type {
        MediaType::Json => {
            let mut bytes = json::encode(tree, schema);
            bytes.push(b'\n');
            match accepted.pretty {
                true => indent(&bytes),
                false => bytes.into(),
            }
        }
        MediaType::Yaml => yaml::encode(tree, schema).into(),
        MediaType::Protobuf => protobuf::encode(tree, schema).ok_or_else(no_protobuf)?.into(),
        MediaType::Cbor => cbor::encode(tree, schema).into(),
    })
}

/// Encodes a `Status`.
pub(crate) fn encode_status(status: &Status, accepted: &Accepted) -> Bytes {
    encode_status_tree(&status.to_value(), accepted)
}

/// Encodes a `Status` with its code, which a success `Status` mostly omits.
pub(crate) fn encode_status_with_code(status: &Status, accepted: &Accepted) -> Bytes {
    let mut tree = status.to_value();
    tree.set("code", status.code);
    encode_status_tree(&tree, accepted)
}

fn encode_status_tree(tree: &Value, accepted: &Accepted) -> Bytes {
    match encode(tree, *STATUS, accepted) {
        Ok(bytes) => bytes,
        Err(_) => format!("{tree}\n").into(),
    }
}

/// The 406 for an object without a protobuf form.
pub(crate) fn no_protobuf() -> Status {
    Status::not_acceptable("the object has no protobuf form")
}

/// Indents JSON by two spaces per level, as Go does.
pub(crate) fn indent(json: &[u8]) -> Bytes {
    Indenter::default().indent(json)
}

/// Indents JSON that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last byte was an opening bracket.
    just_opened: bool,
}

impl Indenter {
    /// Indents the next piece of compact JSON.
    pub(crate) fn indent(&mut self, json: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(json.len() * 2);
        for &byte in json {
            if self.in_string {
                out.put_u8(byte);
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            let closes = matches!(byte, b'}' | b']');
            match (std::mem::replace(&mut self.just_opened, false), closes) {
                (true, false) => {
                    self.depth += 1;
                    self.line(&mut out);
                }
                (false, true) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.line(&mut out);
                }
                // An empty object or list stays on one line.
                (true, true) | (false, false) => {}
            }
            match byte {
                b',' => {
                    out.put_u8(byte);
                    self.line(&mut out);
                }
                b':' => out.put_slice(b": "),
                // Go ends compact JSON alone with a newline.
                b'\n' => {}
                byte => out.put_u8(byte),
            }
            self.in_string = byte == b'"';
            self.just_opened = matches!(byte, b'{' | b'[');
        }
        out.freeze()
    }

    fn line(&self, out: &mut BytesMut) {
        out.put_u8(b'\n');
        out.put_bytes(b' ', self.depth * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indenting_is_that_of_go() {
        let text = indent(b"{\"a\":{},\"b\":[],\"c\":[1,{\"d\":\"x,{\\\":\"}]}\n");
        let pieces = b"{\"a\":{},\"b\":[],\"c\":[1,{\"d\":\"x,{\\\":\"}]}\n".chunks(1);
        let mut indenter = Indenter::default();
        let in_pieces: Vec<u8> = pieces.flat_map(|piece| indenter.indent(piece)).collect();
        assert_eq!(in_pieces, text);
        let want = "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x,{\\\":\"\n    }\n  ]\n}";
        assert_eq!(std::str::from_utf8(&text).unwrap(), want);
    }
}
