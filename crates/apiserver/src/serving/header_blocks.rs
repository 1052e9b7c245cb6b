//! Measures the header block of an HTTP/2 connection that has begun and not ended
//! ([RFC 9113, section 4.3](https://www.rfc-editor.org/rfc/rfc9113#section-4.3)).
//!
//! The HTTP library decodes a block as its frames come, and keeps the headers until the last one. It bounds the memory
//! of one block, not that of the blocks of all connections.

use super::head_budget::HEADER_BYTES;

/// The bytes before the first frame.
const PREFACE_BYTES: usize = 24;
/// The bytes before the payload of a frame.
const FRAME_HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
/// The most memory of a block: the library counts 32 bytes for each header beside its text, up to a megabyte.
const MAX_BLOCK_BYTES: usize = 5 << 20;

/// The position in the frames of a connection.
#[derive(Default)]
pub(super) struct HeaderBlocks {
    preface: usize,
    head: [u8; FRAME_HEAD_BYTES],
    head_bytes: usize,
    /// The bytes of the payload that are to come.
    payload: usize,
    is_of_block: bool,
    ends_block: bool,
    /// The size of the block that has begun.
    block: usize,
}

impl HeaderBlocks {
    /// Skips bytes of the client.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.preface < PREFACE_BYTES {
                self.preface += take(&mut bytes, PREFACE_BYTES - self.preface).len();
            } else if self.payload > 0 {
                let taken = take(&mut bytes, self.payload).len();
                self.payload -= taken;
                if self.is_of_block {
                    self.block += taken;
                }
                self.end_frame();
            } else {
                let taken = take(&mut bytes, FRAME_HEAD_BYTES - self.head_bytes);
                if let Some(head) = self.head.get_mut(self.head_bytes..self.head_bytes + taken.len()) {
                    head.copy_from_slice(taken);
                }
                self.head_bytes += taken.len();
                if self.head_bytes == FRAME_HEAD_BYTES {
                    self.begin_frame();
                }
            }
        }
    }

    fn begin_frame(&mut self) {
        let [high, middle, low, kind, flags, ..] = self.head;
        self.head_bytes = 0;
        self.payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.is_of_block = matches!(kind, HEADERS | CONTINUATION);
        self.ends_block = self.is_of_block && flags & END_HEADERS != 0;
        if kind == HEADERS {
            self.block = 0;
        }
        self.end_frame();
    }

    fn end_frame(&mut self) {
        if self.payload == 0 && self.ends_block {
            self.block = 0;
        }
    }

    /// The most memory that the block that has begun may take, in bytes: each of its bytes may name a header.
    pub(super) fn memory(&self) -> usize {
        self.block.saturating_mul(HEADER_BYTES).min(MAX_BLOCK_BYTES)
    }
}

/// The first of the bytes, up to `most`, which are removed.
fn take<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let mut frame = (payload as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.extend(vec![HEADERS; payload]);
        frame
    }

    #[test]
    fn a_block_counts_until_its_last_frame() {
        const DATA: u8 = 0;
        let steps = [
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 0),
            (frame(4, END_HEADERS, 6), 0),
            (frame(HEADERS, END_HEADERS, 20), 0),
            (frame(DATA, 0, 300), 0),
            (frame(HEADERS, 1, 20), 20),
            (frame(CONTINUATION, 0, 30), 50),
            (frame(CONTINUATION, 0, 0), 50),
            (frame(CONTINUATION, END_HEADERS, 0), 0),
            (frame(HEADERS, 0, 70_000), 70_000),
            (frame(CONTINUATION, END_HEADERS, 1), 0),
        ];
        for piece in [1, 2, 3, 7, 100, 100_000] {
            let mut blocks = HeaderBlocks::default();
            for (bytes, expected) in &steps {
                bytes.chunks(piece).for_each(|piece| blocks.read(piece));
                assert_eq!(blocks.block, *expected, "by {piece}");
            }
        }
    }
}
