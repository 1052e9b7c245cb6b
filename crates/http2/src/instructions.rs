//! Decodes the instructions of a header block ([RFC 7541, section 6](https://www.rfc-editor.org/rfc/rfc7541#section-6)).

use crate::{huffman, table::Table};

/// Decodes the blocks of one connection, in order.
#[derive(Default)]
pub(crate) struct Instructions {
    table: Table,
    /// The text of the header that is being decoded.
    text: Vec<u8>,
}

/// The text that is kept for the next header, in bytes.
const KEPT_TEXT_BYTES: usize = 8 << 10;

impl Instructions {
    /// Decodes a whole block and passes its headers on, with name and value, and whether an earlier call found the header
    /// well-formed, which is what it returns. `None` if the block is not well-formed: the blocks behind it cannot be decoded.
    pub(crate) fn decode(
        &mut self,
        mut block: &[u8],
        mut header: impl FnMut(&[u8], &[u8], bool) -> bool,
    ) -> Option<()> {
        while let Some(first) = block.first() {
            if first & 0x80 != 0 {
                let (name, value, is_checked) = self.table.get(integer(&mut block, 7)?)?;
                header(name, value, is_checked);
            } else if first & 0xe0 == 0x20 {
                self.table.resize(integer(&mut block, 5)?)?;
            } else {
                let is_added = first & 0x40 != 0;
                let index = integer(&mut block, if is_added { 6 } else { 4 })?;
                self.text.clear();
                match index {
                    0 => text(&mut block, &mut self.text)?,
                    _ => self.text.extend_from_slice(self.table.get(index)?.0),
                }
                let name_length = self.text.len();
                text(&mut block, &mut self.text)?;
                let (name, value) = self.text.split_at_checked(name_length)?;
                let is_checked = header(name, value, false);
                if is_added {
                    self.table.add(name, value, is_checked);
                }
            }
        }
        if self.text.capacity() > KEPT_TEXT_BYTES {
            self.text = Vec::new();
        }
        Some(())
    }
}

/// Removes an integer whose first byte has this many bits of it.
fn integer(block: &mut &[u8], bits: u32) -> Option<usize> {
    let (first, mut rest) = block.split_first()?;
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        // No index or length needs more bytes.
        for shift in [0, 7, 14, 21] {
            let (byte, after) = rest.split_first()?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *block = rest;
                return Some(value);
            }
        }
        return None;
    }
    *block = rest;
    Some(value)
}

/// Removes a text, which is appended to `decoded`.
fn text(block: &mut &[u8], decoded: &mut Vec<u8>) -> Option<()> {
    let is_compressed = block.first()? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    match is_compressed {
        true => huffman::decode(text, decoded)?,
        false => decoded.extend_from_slice(text),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_decoded_in_order() {
        let literal = |first: u8, name: &str, value: &str| {
            let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
            let name = if name.is_empty() { vec![] } else { text(name) };
            [vec![first], name, text(value)].concat()
        };
        let long = [&[0x01, 0x7f, 0x81, 0x01][..], &[b'x'; 256]].concat();
        let named = format!(":authority={} ", "x".repeat(256));
        let rows: [(Vec<u8>, Option<&str>); 15] = [
            (vec![0x82], Some(":method=GET ")),
            // Added to the table, and not.
            (literal(0x40, "a", "b"), Some("a=b ")),
            (literal(0x00, "c", "d"), Some("c=d ")),
            (literal(0x10, "e", "f"), Some("e=f ")),
            (vec![0x80 | 62], Some("a=b ")),
            // With the name of an entry.
            (literal(0x41, "", "h"), Some(":authority=h ")),
            (vec![0x80 | 62, 0x80 | 63], Some(":authority=h a=b ")),
            (literal(0x0f, "", "x"), None),
            (long, Some(&named)),
            // The table is emptied.
            (vec![0x20], Some("")),
            (vec![0x80 | 62], None),
            (vec![0x3f, 0xe2, 0x1f], None),
            (vec![0x80], None),
            (vec![0x00, 0x01], None),
            (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], None),
        ];
        let mut instructions = Instructions::default();
        for (block, expected) in rows {
            let mut headers = String::new();
            let decoded = instructions.decode(&block, |name, value, _| {
                headers.push_str(&format!("{}={} ", name.escape_ascii(), value.escape_ascii()));
                true
            });
            assert_eq!(decoded.map(|()| headers.as_str()), expected, "{block:?}");
        }
    }
}
