//! One part of a body.

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, FlushCompress, Status};
use std::cell::RefCell;

/// Deflate blocks, none of them final, that end at a byte boundary and refer to nothing before them; with the checksum
/// and the length of their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub(crate) deflated: Bytes,
    pub(crate) checksum: u32,
    pub(crate) length: u64,
}

/// The bytes in front of the blocks in [`Part::to_bytes`].
const PACKED_HEAD: usize = 12;

thread_local! {
    /// Each thread that compresses has one state, of some hundred kilobytes.
    static FAST: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
}

impl Part {
    /// Compresses pieces that follow one another, at the fastest level.
    pub fn fast(pieces: &[&[u8]]) -> Part {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut hasher = crc32fast::Hasher::new();
        let mut deflated = Vec::with_capacity(length / 2 + 64);
        FAST.with_borrow_mut(|compress| {
            compress.reset();
            for (index, piece) in pieces.iter().enumerate() {
                hasher.update(piece);
                let flush = if index + 1 == pieces.len() { FlushCompress::Full } else { FlushCompress::None };
                deflate(compress, piece, flush, &mut deflated);
            }
        });
        deflated.shrink_to_fit();
        Part { deflated: deflated.into(), checksum: hasher.finalize(), length: length as u64 }
    }

    /// The deflate blocks.
    pub fn deflated(&self) -> &Bytes {
        &self.deflated
    }

    /// The CRC-32 of the content.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The length of the content, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The part as bytes, for a cache of bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(PACKED_HEAD + self.deflated.len());
        bytes.put_u32(self.checksum);
        bytes.put_u64(self.length);
        bytes.put_slice(&self.deflated);
        bytes.freeze()
    }

    /// The part of [`Part::to_bytes`]; `None` for bytes that are too short to be one.
    pub fn from_bytes(bytes: &Bytes) -> Option<Part> {
        let (checksum, rest) = bytes.split_first_chunk::<4>()?;
        let (length, _) = rest.split_first_chunk::<8>()?;
        let (checksum, length) = (u32::from_be_bytes(*checksum), u64::from_be_bytes(*length));
        Some(Part { deflated: bytes.slice(PACKED_HEAD..), checksum, length })
    }
}

/// Compresses all of a piece. Compressing does not fail; room is made as it is needed, and `out` must have some.
///
/// A flush that meets the end of the room is asked for again until it is whole: [`flate2::write::DeflateEncoder`] asks
/// once, and what it leaves out is the end of the last block.
pub(crate) fn deflate(compress: &mut Compress, mut piece: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
    loop {
        let before = compress.total_in();
        let status = compress.compress_vec(piece, out, flush);
        piece = piece.get((compress.total_in() - before) as usize..).unwrap_or_default();
        // A call that leaves room has written everything, also what the flush asks for.
        if (piece.is_empty() && out.len() < out.capacity()) || !matches!(status, Ok(Status::Ok)) {
            return;
        }
        out.reserve(out.capacity() / 2 + 64);
    }
}

#[cfg(test)]
mod tests {
    use crate::{HEADER, Part, PartWriter, Trailer};
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::{Read as _, Write as _};

    fn body(parts: &[Part]) -> Vec<u8> {
        let mut body = HEADER.to_vec();
        let mut trailer = Trailer::default();
        for part in parts {
            body.extend_from_slice(part.deflated());
            trailer.add(part);
        }
        body.extend_from_slice(&trailer.finish());
        body
    }

    fn inflated(body: &[u8]) -> Vec<u8> {
        let mut content = Vec::new();
        GzDecoder::new(body).read_to_end(&mut content).unwrap();
        content
    }

    /// Bytes that repeat, and bytes that cannot be compressed.
    fn content() -> impl Strategy<Value = Vec<u8>> {
        let repeated = (0_u8..=255, 0_usize..70_000).prop_map(|(byte, count)| vec![byte; count]);
        prop_oneof![repeated, prop::collection::vec(any::<u8>(), 0..5_000), words()]
    }

    /// Text of several buffers, most of whose blocks are written by the flush at its end.
    fn words() -> impl Strategy<Value = Vec<u8>> {
        (any::<u64>(), 0_usize..150_000).prop_map(|(mut state, length)| {
            let mut text = Vec::with_capacity(length + 24);
            while text.len() < length {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let _ = write!(text, "{:x} ", state >> 40);
            }
            text
        })
    }

    proptest! {
        #[test]
        fn parts_in_any_order_make_a_body(contents in prop::collection::vec(content(), 0..6)) {
            let parts: Vec<Part> = contents
                .iter()
                .enumerate()
                .map(|(index, content)| match index % 2 {
                    0 => Part::fast(&[&content[..content.len() / 3], &content[content.len() / 3..]]),
                    _ => PartWriter::write_part(None, |out| out.write_all(content)),
                })
                .collect();
            prop_assert_eq!(inflated(&body(&parts)), contents.concat());
            let packed: Vec<Part> = parts.iter().map(|part| Part::from_bytes(&part.to_bytes()).unwrap()).collect();
            prop_assert_eq!(&packed, &parts);
            let turned: Vec<Part> = parts.into_iter().rev().collect();
            let contents: Vec<Vec<u8>> = contents.into_iter().rev().collect();
            prop_assert_eq!(inflated(&body(&turned)), contents.concat());
        }
    }

    #[test]
    fn bytes_that_are_no_part_are_refused() {
        assert_eq!(Part::from_bytes(&bytes::Bytes::from_static(&[0; 11])), None);
        assert_eq!(inflated(&body(&[Part::from_bytes(&bytes::Bytes::from_static(&[0; 12])).unwrap()])), b"");
    }
}
