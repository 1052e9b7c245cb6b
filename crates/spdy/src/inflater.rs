//! Decompresses the headers that a peer sends, and encodes ours.

use crate::{
    FrameError, MAX_HEADER_BYTES,
    dictionary::{DICTIONARY, DICTIONARY_ID},
};
use miniz_oxide::inflate::{
    TINFLStatus,
    core::{DecompressorOxide, decompress, inflate_flags::TINFL_FLAG_HAS_MORE_INPUT},
};
use std::fmt;

/// The window of the compression, in bytes.
const WINDOW_BYTES: usize = 32 << 10;
/// The flag of a zlib header that a dictionary's checksum follows.
const HAS_DICTIONARY: u8 = 0x20;

/// Decompresses the blocks of one direction of a session, which are one zlib stream.
#[derive(Default)]
pub(crate) struct Inflater(Option<Box<State>>);

struct State {
    decompressor: DecompressorOxide,
    /// The latest output, beginning with the dictionary, as a ring.
    window: [u8; WINDOW_BYTES],
    position: usize,
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").finish_non_exhaustive()
    }
}

impl Inflater {
    /// Decompresses the next block, to at most [`MAX_HEADER_BYTES`]. After an error the session is unusable.
    ///
    /// # Errors
    /// When the block is malformed, or too long decompressed.
    pub(crate) fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, FrameError> {
        let state = match &mut self.0 {
            Some(state) => state,
            None => {
                let position;
                (position, block) = begin(block)?;
                let mut state = Box::new(State {
                    decompressor: DecompressorOxide::new(),
                    window: [0; WINDOW_BYTES],
                    position,
                });
                for (byte, known) in state.window.iter_mut().zip(DICTIONARY) {
                    *byte = *known;
                }
                self.0.insert(state)
            }
        };
        let mut output = Vec::new();
        loop {
            let State { decompressor, window, position } = &mut **state;
            let (status, read, written) =
                decompress(decompressor, block, window, *position, TINFL_FLAG_HAS_MORE_INPUT);
            let new = window.get(*position..*position + written).ok_or(FrameError::Compression)?;
            if output.len() + new.len() > MAX_HEADER_BYTES {
                return Err(FrameError::Headers);
            }
            output.extend_from_slice(new);
            *position = (*position + written) % WINDOW_BYTES;
            block = block.get(read..).ok_or(FrameError::Compression)?;
            match status {
                TINFLStatus::NeedsMoreInput if block.is_empty() => return Ok(output),
                TINFLStatus::HasMoreOutput => {}
                // The stream goes on as long as the session does.
                _ => return Err(FrameError::Compression),
            }
        }
    }
}

/// Reads the header of the zlib stream: where the window begins, and the rest of the block.
fn begin(block: &[u8]) -> Result<(usize, &[u8]), FrameError> {
    let (header, rest) = block.split_first_chunk::<2>().ok_or(FrameError::Compression)?;
    let [method, flags] = *header;
    if method & 0xf != 8 || method >> 4 > 7 || u16::from_be_bytes(*header) % 31 != 0 {
        return Err(FrameError::Compression);
    }
    if flags & HAS_DICTIONARY == 0 {
        return Ok((0, rest));
    }
    match rest.split_first_chunk::<4>() {
        Some((&DICTIONARY_ID, rest)) => Ok((DICTIONARY.len(), rest)),
        _ => Err(FrameError::Compression),
    }
}

/// Encodes the next block of our direction of a session. It is stored, not compressed: headers are a few words, and a
/// compressor would take a quarter of a megabyte for each session.
pub(crate) fn store(block: &[u8], is_first: bool, output: &mut Vec<u8>) {
    if is_first {
        output.extend_from_slice(&[0x78, 0xbb]);
        output.extend_from_slice(&DICTIONARY_ID);
    }
    // The empty last part makes decoders give out what they have.
    for part in block.chunks(u16::MAX.into()).chain([&[][..]]) {
        let length = part.len() as u16;
        output.push(0);
        output.extend_from_slice(&length.to_le_bytes());
        output.extend_from_slice(&(!length).to_le_bytes());
        output.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The blocks in which a client of Kubernetes opens an error stream and a stream of input, compressed by zlib.
    #[test]
    fn compressed_blocks_refer_to_the_dictionary_and_to_each_other() {
        let mut inflater = Inflater::default();
        let first = inflater.inflate(include_bytes!("../fixtures/error-stream")).unwrap();
        assert_eq!(first, b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05error");
        let second = inflater.inflate(include_bytes!("../fixtures/stdin-stream")).unwrap();
        assert_eq!(second, b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05stdin");
    }

    #[test]
    fn malformed_streams_are_refused() {
        let blocks: [&[u8]; 6] = [
            b"",
            b"\x78",
            b"\x78\x9d\0",
            b"\x78\xbb\0\0\0\0",
            b"\x78\xbb\xe3\xc6\xa7\xc2\x07",
            // A last block, after which nothing could come.
            b"\x78\xbb\xe3\xc6\xa7\xc2\x03\x00",
        ];
        for block in blocks {
            assert!(matches!(Inflater::default().inflate(block), Err(FrameError::Compression)), "{block:?}");
        }
    }

    #[test]
    fn a_small_block_that_becomes_large_is_refused() {
        let zeros = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0; 100 << 20], 9);
        assert!(zeros.len() < 200 << 10);
        assert!(matches!(Inflater::default().inflate(&zeros), Err(FrameError::Headers)));
    }

    proptest! {
        #[test]
        fn stored_blocks_are_read(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40_000), 1..5)) {
            let mut inflater = Inflater::default();
            for (place, block) in blocks.iter().enumerate() {
                let mut stored = Vec::new();
                store(block, place == 0, &mut stored);
                prop_assert_eq!(&inflater.inflate(&stored).unwrap(), block);
            }
        }
    }
}
