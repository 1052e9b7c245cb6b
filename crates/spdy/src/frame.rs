//! The frames, without the payload of data frames.

use crate::FrameError;
use bytes::{Buf, BufMut};

/// The length of the header of every frame, in bytes.
pub(crate) const HEADER_BYTES: usize = 8;
/// The flag by which a side ends its direction of a stream.
pub(crate) const FIN: u8 = 1;
/// The flag of a stream in which only its opener sends.
pub(crate) const UNIDIRECTIONAL: u8 = 2;

/// The bit of a header that marks control frames.
const CONTROL: u16 = 0x8000;
const VERSION: u16 = 3;
const STREAM_MASK: u32 = 0x7fff_ffff;

pub(crate) const SYN_STREAM: u16 = 1;
pub(crate) const SYN_REPLY: u16 = 2;
pub(crate) const RST_STREAM: u16 = 3;
pub(crate) const SETTINGS: u16 = 4;
pub(crate) const PING: u16 = 6;
pub(crate) const GOAWAY: u16 = 7;
pub(crate) const HEADERS: u16 = 8;
pub(crate) const WINDOW_UPDATE: u16 = 9;

/// The most bytes of compressed headers, and so of a control frame's payload.
pub(crate) const MAX_CONTROL_BYTES: usize = crate::MAX_HEADER_BYTES;

/// The reason of a reset, as peers of Kubernetes use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    ProtocolError,
    RefusedStream,
    Cancel,
}

impl Reset {
    fn number(self) -> u32 {
        match self {
            Reset::ProtocolError => 1,
            Reset::RefusedStream => 3,
            Reset::Cancel => 5,
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Control { kind: u16, flags: u8, length: usize },
    Data { stream: u32, flags: u8, length: usize },
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// When the header breaks the protocol.
    pub(crate) fn read(bytes: [u8; HEADER_BYTES]) -> Result<Header, FrameError> {
        let mut rest = &bytes[..];
        let word = rest.get_u32();
        let flags = rest.get_u8();
        let length = rest.get_uint(3) as usize;
        let (high, low) = ((word >> 16) as u16, word as u16);
        if high & CONTROL == 0 {
            return match word {
                0 => Err(FrameError::StreamZero),
                stream => Ok(Header::Data { stream, flags, length }),
            };
        }
        if high != CONTROL | VERSION {
            return Err(FrameError::Version(high & !CONTROL));
        }
        let fits = match low {
            SYN_STREAM => (10..=MAX_CONTROL_BYTES).contains(&length),
            SYN_REPLY | HEADERS => (4..=MAX_CONTROL_BYTES).contains(&length),
            SETTINGS => (4..=MAX_CONTROL_BYTES).contains(&length),
            RST_STREAM | GOAWAY | WINDOW_UPDATE => length == 8,
            PING => length == 4,
            kind => return Err(FrameError::Type(kind)),
        };
        match fits {
            true => Ok(Header::Control { kind: low, flags, length }),
            false => Err(FrameError::Length { kind: low, length }),
        }
    }

    pub(crate) fn put(self, output: &mut Vec<u8>) {
        let (flags, length) = match self {
            Header::Control { kind, flags, length } => {
                output.put_u16(CONTROL | VERSION);
                output.put_u16(kind);
                (flags, length)
            }
            Header::Data { stream, flags, length } => {
                output.put_u32(stream);
                (flags, length)
            }
        };
        output.put_u8(flags);
        output.put_uint(length as u64, 3);
    }
}

/// A control frame that has no headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Reset { stream: u32, reset: Reset },
    Ping(u32),
    GoAway { last_stream: u32 },
}

impl Control {
    pub(crate) fn put(self, output: &mut Vec<u8>) {
        let (kind, first, second) = match self {
            Control::Reset { stream, reset } => (RST_STREAM, stream, Some(reset.number())),
            Control::Ping(id) => (PING, id, None),
            Control::GoAway { last_stream } => (GOAWAY, last_stream, Some(0)),
        };
        let length = if second.is_some() { 8 } else { 4 };
        Header::Control { kind, flags: 0, length }.put(output);
        output.put_u32(first);
        if let Some(second) = second {
            output.put_u32(second);
        }
    }
}

/// Takes the number of a stream from the beginning of a payload.
///
/// # Errors
/// When it is missing or zero.
pub(crate) fn take_stream(payload: &mut &[u8]) -> Result<u32, FrameError> {
    match payload.try_get_u32().map(|word| word & STREAM_MASK) {
        Ok(0) | Err(_) => Err(FrameError::StreamZero),
        Ok(stream) => Ok(stream),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_that_break_the_protocol() {
        let cases: [(&[u8; 8], &str); 8] = [
            (b"\0\0\0\0\0\0\0\x01", "stream 0 does not exist"),
            (b"\x80\x02\0\x01\0\0\0\x0a", "the version 2 is unknown"),
            (b"\x80\x03\0\x05\0\0\0\x0a", "the frame type 5 is unknown"),
            (b"\x80\x03\0\x01\0\0\0\x09", "a control frame of type 1 has 9 bytes"),
            (b"\x80\x03\0\x02\0\x01\0\x01", "a control frame of type 2 has 65537 bytes"),
            (b"\x80\x03\0\x03\0\0\0\x09", "a control frame of type 3 has 9 bytes"),
            (b"\x80\x03\0\x06\0\xff\xff\xff", "a control frame of type 6 has 16777215 bytes"),
            (b"\x80\x03\0\x07\0\0\0\0", "a control frame of type 7 has 0 bytes"),
        ];
        for (bytes, message) in cases {
            assert_eq!(Header::read(*bytes).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn headers_survive_decoding_and_encoding(bytes: [u8; 8]) {
            if let Ok(header) = Header::read(bytes) {
                let mut output = Vec::new();
                header.put(&mut output);
                prop_assert_eq!(output, bytes);
            }
        }
    }
}
