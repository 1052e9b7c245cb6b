//! The header of a frame.

use crate::{Opcode, ReadError};
use bytes::{Buf, BufMut, BytesMut};

/// The side of a connection. A client masks its frames, a server does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that accepted the connection.
    Server,
    /// The side that opened the connection.
    Client,
}

/// The longest payload of a control frame, in bytes.
pub(crate) const MAX_CONTROL_BYTES: u64 = 125;
/// The most bytes of a header.
pub(crate) const MAX_HEADER_BYTES: usize = 14;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) is_final: bool,
    /// `None` for a continuation.
    pub(crate) opcode: Option<Opcode>,
    pub(crate) length: u64,
    pub(crate) mask: Option<[u8; 4]>,
}

impl Header {
    /// Takes a header from the beginning of a buffer; `None` when it is not complete yet.
    ///
    /// # Errors
    /// When the header breaks the protocol.
    pub(crate) fn take(buffer: &mut BytesMut) -> Result<Option<Header>, ReadError> {
        let mut rest: &[u8] = buffer;
        let [first, second, ..] = *rest else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(ReadError::ReservedBit);
        }
        let is_final = first & 0x80 != 0;
        let opcode = match first & 0xf {
            0 => None,
            1 => Some(Opcode::Text),
            2 => Some(Opcode::Binary),
            8 => Some(Opcode::Close),
            9 => Some(Opcode::Ping),
            10 => Some(Opcode::Pong),
            unknown => return Err(ReadError::UnknownOpcode(unknown)),
        };
        rest.advance(2);
        let short = u64::from(second & 0x7f);
        let is_masked = second & 0x80 != 0;
        let length_bytes = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if rest.len() < length_bytes + if is_masked { 4 } else { 0 } {
            return Ok(None);
        }
        let length = match length_bytes {
            2 => rest.get_u16().into(),
            8 => rest.get_u64(),
            _ => short,
        };
        let mask = is_masked.then(|| rest.get_u32().to_be_bytes());
        if opcode.is_some_and(Opcode::is_control) && (length > MAX_CONTROL_BYTES || !is_final) {
            return Err(ReadError::ControlFrame);
        }
        let taken = buffer.len() - rest.len();
        buffer.advance(taken);
        Ok(Some(Header { is_final, opcode, length, mask }))
    }

    pub(crate) fn put(&self, buffer: &mut BytesMut) {
        let opcode = self.opcode.map_or(0, Opcode::number);
        buffer.put_u8(if self.is_final { 0x80 | opcode } else { opcode });
        let masked = if self.mask.is_some() { 0x80 } else { 0 };
        match self.length {
            short @ 0..=125 => buffer.put_u8(masked | short as u8),
            medium @ 126..=0xffff => {
                buffer.put_u8(masked | 126);
                buffer.put_u16(medium as u16);
            }
            long => {
                buffer.put_u8(masked | 127);
                buffer.put_u64(long);
            }
        }
        if let Some(mask) = self.mask {
            buffer.put_slice(&mask);
        }
    }
}

/// Appends a frame of a server, which is a whole message or a control frame.
pub fn put_frame(buffer: &mut BytesMut, opcode: Opcode, payload: &[u8]) {
    buffer.reserve(MAX_HEADER_BYTES + payload.len());
    put_header(buffer, opcode, payload.len());
    buffer.put_slice(payload);
}

/// Appends the header of such a frame, for a payload that stays where it is.
pub fn put_header(buffer: &mut BytesMut, opcode: Opcode, length: usize) {
    Header { is_final: true, opcode: Some(opcode), length: length as u64, mask: None }.put(buffer);
}

/// Masks or unmasks bytes that begin at a position of the payload.
pub(crate) fn apply_mask(bytes: &mut [u8], mut mask: [u8; 4], position: u64) {
    mask.rotate_left((position % 4) as usize);
    // The mask four times: sixteen bytes at once are one instruction.
    let wide = u128::from(u32::from_ne_bytes(mask)) * 0x1_0000_0001_0000_0001_0000_0001;
    let (chunks, rest) = bytes.as_chunks_mut();
    for chunk in chunks {
        *chunk = (u128::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(wide.to_ne_bytes()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(bytes: &[u8]) -> Result<Option<Header>, ReadError> {
        Header::take(&mut BytesMut::from(bytes))
    }

    #[test]
    fn headers_that_break_the_protocol() {
        assert!(matches!(take(&[0x81]), Ok(None)));
        assert!(matches!(take(&[0x82, 0xfe, 0]), Ok(None)));
        assert!(matches!(take(&[0xc1, 0]), Err(ReadError::ReservedBit)));
        assert!(matches!(take(&[0x83, 0]), Err(ReadError::UnknownOpcode(3))));
        assert!(matches!(take(&[0x09, 0]), Err(ReadError::ControlFrame)));
        assert!(matches!(take(&[0x89, 126, 0, 126]), Err(ReadError::ControlFrame)));
    }

    #[test]
    fn a_frame_of_a_server_has_no_mask() {
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, Opcode::Text, b"a");
        put_header(&mut buffer, Opcode::Binary, 126);
        assert_eq!(buffer, &b"\x81\x01a\x82\x7e\0\x7e"[..]);
    }

    proptest! {
        #[test]
        fn a_header_survives_encoding_and_decoding(
            is_final: bool,
            opcode in prop_oneof![Just(None), Just(Some(Opcode::Text)), Just(Some(Opcode::Binary))],
            length in prop_oneof![0..200_u64, 65_000..70_000_u64, any::<u64>()],
            mask: Option<[u8; 4]>,
        ) {
            let header = Header { is_final, opcode, length, mask };
            let mut buffer = BytesMut::new();
            header.put(&mut buffer);
            prop_assert!(buffer.len() <= MAX_HEADER_BYTES);
            for cut in 0..buffer.len() {
                prop_assert!(matches!(take(&buffer[..cut]), Ok(None)));
            }
            prop_assert_eq!(take(&buffer).unwrap(), Some(header));
        }

        #[test]
        fn a_mask_may_be_applied_piece_by_piece(bytes: Vec<u8>, mask: [u8; 4], cut: prop::sample::Index) {
            let mut whole = bytes.clone();
            apply_mask(&mut whole, mask, 0);
            let expected: Vec<u8> = bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            prop_assert_eq!(&whole, &expected);
            let cut = cut.index(bytes.len() + 1);
            let mut pieces = bytes.clone();
            let (first, second) = pieces.split_at_mut(cut);
            apply_mask(first, mask, 0);
            apply_mask(second, mask, cut as u64);
            prop_assert_eq!(&pieces, &whole);
            apply_mask(&mut whole, mask, 0);
            prop_assert_eq!(whole, bytes);
        }
    }
}
