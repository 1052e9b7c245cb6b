//! Reads and writes the tags, numbers and lengths of the protobuf wire format.

use crate::codec::error::{DecodeError, Fallible};

pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;

fn error(message: impl Into<String>) -> Box<DecodeError> {
    Box::new(DecodeError::Protobuf(message.into()))
}

fn unexpected_end() -> Box<DecodeError> {
    error("unexpected EOF")
}

fn negative_length() -> Box<DecodeError> {
    error("proto: negative length found during unmarshaling")
}

/// The error for a field of another wire type, with the field's name in Go.
pub(super) fn wrong_type(wire_type: u8, field: &str) -> Box<DecodeError> {
    error(format!("proto: wrong wireType = {wire_type} for field {field}"))
}

/// The fields of one message that were not read yet.
pub(super) struct Reader<'d> {
    data: &'d [u8],
    /// The size of the message.
    size: usize,
}

impl<'d> Reader<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self { data, size: data.len() }
    }

    /// The next field's number and wire type; `None` at the end.
    pub(super) fn tag(&mut self, message: &str) -> Fallible<Option<(u32, u8)>> {
        if self.data.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = (tag & 7) as u8;
        let number = (tag >> 3) as i32;
        if wire_type == 4 {
            return Err(error(format!("proto: {message}: wiretype end group for non-group")));
        }
        if number <= 0 {
            return Err(error(format!("proto: {message}: illegal tag {number} (wire type {tag})")));
        }
        Ok(Some((number as u32, wire_type)))
    }

    /// Reads an entry of a map: calls `take` with the number and the wire type of each of its fields. Go's decoder accepts
    /// any of them. `take` returns whether it took the field; others are skipped.
    ///
    /// A key or a value ends within its entry. Go's decoder lets it go on as far as the message, and so reads the same bytes
    /// again for each entry in front of them: the work would grow with the square of the body.
    pub(super) fn entry(
        &mut self,
        mut take: impl FnMut(u32, u8, &mut Self) -> Fallible<bool>,
    ) -> Fallible<()> {
        let mut entry = Reader::new(self.bytes()?);
        while !entry.at_end() {
            let tag = entry.varint()?;
            let wire_type = (tag & 7) as u8;
            if !take((tag >> 3) as u32, wire_type, &mut entry)? {
                entry.skip(wire_type)?;
            }
        }
        Ok(())
    }

    pub(super) fn at_end(&self) -> bool {
        self.data.is_empty()
    }

    pub(super) fn varint(&mut self) -> Fallible<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.data.split_first().ok_or_else(unexpected_end)?;
            self.data = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(error("proto: integer overflow"))
    }

    pub(super) fn fixed64(&mut self) -> Fallible<u64> {
        let (bytes, rest) = self.data.split_first_chunk::<8>().ok_or_else(unexpected_end)?;
        self.data = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// A length. Go adds it to the position in the message, and takes the sum for negative when it overflows.
    fn len(&mut self) -> Fallible<usize> {
        let len = self.varint()?;
        let position = (self.size - self.data.len()) as u64;
        let end = len.checked_add(position).and_then(|end| i64::try_from(end).ok());
        end.ok_or_else(negative_length)?;
        usize::try_from(len).map_err(|_| unexpected_end())
    }

    pub(super) fn bytes(&mut self) -> Fallible<&'d [u8]> {
        let len = self.len()?;
        let (bytes, rest) = self.data.split_at_checked(len).ok_or_else(unexpected_end)?;
        self.data = rest;
        Ok(bytes)
    }

    /// Skips an unknown field.
    pub(super) fn skip(&mut self, wire_type: u8) -> Fallible<()> {
        let mut groups = 0u32;
        let mut wire_type = wire_type;
        loop {
            match wire_type {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.fixed64()?),
                BYTES => drop(self.bytes()?),
                3 => groups += 1,
                4 => {
                    groups = groups.checked_sub(1).ok_or_else(|| error("proto: unexpected end of group"))?;
                }
                5 => {
                    let (_, rest) = self.data.split_at_checked(4).ok_or_else(unexpected_end)?;
                    self.data = rest;
                }
                other => return Err(error(format!("proto: illegal wireType {other}"))),
            }
            if groups == 0 {
                return Ok(());
            }
            wire_type = (self.varint()? & 7) as u8;
        }
    }
}

pub(super) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn write_tag(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    write_varint(out, u64::from(number << 3 | u32::from(wire_type)));
}

/// Writes a field of bytes: a string, or a message.
pub fn write_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    write_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Writes the tag and the length before the bytes of a field.
pub fn write_head(out: &mut Vec<u8>, number: u32, len: usize) {
    write_tag(out, number, BYTES);
    write_varint(out, len as u64);
}

/// The size in bytes of such a field, whose number is below 16.
pub fn field_len(len: usize) -> usize {
    let bits = usize::BITS - (len | 1).leading_zeros();
    1 + bits.div_ceil(7) as usize + len
}

/// Writes a field whose content comes from a function. The length is written before it once it is known; few messages
/// need more than the one byte that is reserved for it.
pub(super) fn write_nested(out: &mut Vec<u8>, number: u32, content: impl FnOnce(&mut Vec<u8>)) {
    write_tag(out, number, BYTES);
    let at = out.len();
    out.push(0);
    content(out);
    let len = out.len() - at - 1;
    let mut prefix = Vec::new();
    match u8::try_from(len) {
        Ok(short @ 0..0x80) => prefix.push(short),
        _ => write_varint(&mut prefix, len as u64),
    }
    out.splice(at..=at, prefix);
}
