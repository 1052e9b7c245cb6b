//! Reads the frames of an HTTP/2 client ([RFC 9113, section 4](https://www.rfc-editor.org/rfc/rfc9113#section-4)), whose header
//! blocks are judged by Go's rules in front of the HTTP library.
//!
//! All frames but those of header blocks pass as they come. A block is held until its last frame: it is decoded as a whole,
//! and its memory is charged while it has not ended.

use super::{head_budget::HEADER_BYTES, step::Step};
use bytes::{BufMut, BytesMut};
use pintle_http2::{BlockKind, HeaderBlocks, Judgement};

/// The bytes before the first frame.
const PREFACE: &[u8; PREFACE_BYTES] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PREFACE_BYTES: usize = 24;
/// The bytes before the payload of a frame.
const FRAME_HEAD_BYTES: usize = 9;
/// The most bytes of a payload: no setting changes the default.
const MAX_PAYLOAD_BYTES: usize = 16_384;
/// The most frames of a block. The library refuses fewer.
const MAX_BLOCK_FRAMES: usize = 100;
const HEADERS: u8 = 1;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;
/// The bytes of a stream's priority.
const PRIORITY_BYTES: usize = 5;
/// The most memory of a block: the library counts 32 bytes for each header beside its text, up to a megabyte.
const MAX_BLOCK_BYTES: usize = 5 << 20;
/// A frame that ends the connection wherever it comes: one of data of no stream.
const FATAL: [u8; FRAME_HEAD_BYTES] = [0; FRAME_HEAD_BYTES];
/// The acknowledgement of the ping that the library sends behind a GOAWAY.
pub(super) const SHUTDOWN_ACK: &[u8] =
    &[0, 0, 8, PING, ACK, 0, 0, 0, 0, 0x0b, 0x7b, 0xa2, 0xf0, 0x8b, 0x9b, 0xfe, 0x54];

/// The position in the frames of a connection.
#[derive(Default)]
pub(super) struct Frames {
    preface: usize,
    /// The bytes of the payload that are to come.
    payload: usize,
    block: Block,
    /// The bytes of a block that are held.
    held: usize,
    latest_stream: u32,
    blocks: HeaderBlocks,
    is_end_acknowledged: bool,
    is_over: bool,
}

/// The frames of a block that has begun, in front of the next bytes.
#[derive(Default)]
struct Block {
    stream: u32,
    frames: usize,
    bytes: usize,
}

#[derive(Clone, Copy)]
struct FrameHead {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl FrameHead {
    /// The head that bytes begin with.
    fn of(bytes: &[u8]) -> Option<FrameHead> {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        Some(FrameHead { length, kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1) })
    }

    fn write(self, frames: &mut BytesMut) {
        frames.put_uint(self.length as u64, 3);
        frames.put_u8(self.kind);
        frames.put_u8(self.flags);
        frames.put_u32(self.stream);
    }
}

impl Frames {
    /// Inspects the next bytes, of which there is one at least. Those behind [`Step::More`] come again. [`Step::Stop`] means
    /// that this is not HTTP/2: the library would read it as HTTP/1.
    pub(super) fn step(&mut self, input: &[u8]) -> Step {
        if self.is_over {
            return Step::Replace(input.len(), BytesMut::new());
        }
        let mut passed = 0;
        if self.preface < PREFACE_BYTES {
            let expected = PREFACE.get(self.preface..).unwrap_or_default();
            passed = input.len().min(expected.len());
            if input.get(..passed) != expected.get(..passed) {
                return Step::Stop;
            }
            self.preface += passed;
        } else if self.payload > 0 {
            passed = input.len().min(self.payload);
            self.payload -= passed;
        }
        while let Some(rest @ [_, ..]) = input.get(passed..) {
            let head = match FrameHead::of(rest) {
                Some(head) if !matches!(head.kind, HEADERS | CONTINUATION) => head,
                _ if passed > 0 => break,
                None => return Step::More,
                Some(_) => return self.header_frames(input),
            };
            if head.kind == PING && rest.starts_with(SHUTDOWN_ACK) {
                self.is_end_acknowledged = true;
            }
            let bytes = FRAME_HEAD_BYTES + head.length;
            self.payload = bytes.saturating_sub(rest.len());
            passed += bytes.min(rest.len());
        }
        Step::Pass(passed)
    }

    /// Inspects bytes that begin with a block.
    fn header_frames(&mut self, input: &[u8]) -> Step {
        loop {
            let rest = input.get(self.block.bytes..).unwrap_or_default();
            let Some(head) = FrameHead::of(rest) else { break };
            let expected = if self.block.frames == 0 { HEADERS } else { CONTINUATION };
            let is_of_block =
                head.kind == expected && (self.block.frames == 0 || head.stream == self.block.stream);
            if !is_of_block || head.length > MAX_PAYLOAD_BYTES || self.block.frames == MAX_BLOCK_FRAMES {
                return self.end(input);
            }
            let bytes = FRAME_HEAD_BYTES + head.length;
            if rest.len() < bytes {
                break;
            }
            self.block =
                Block { stream: head.stream, frames: self.block.frames + 1, bytes: self.block.bytes + bytes };
            if head.flags & END_HEADERS != 0 {
                let frames = input.get(..self.block.bytes).unwrap_or_default();
                let step = self.whole_block(frames);
                (self.block, self.held) = (Block::default(), 0);
                return step;
            }
        }
        self.held = input.len();
        Step::More
    }

    /// Judges a block, of which these are all frames.
    fn whole_block(&mut self, frames: &[u8]) -> Step {
        let Some(first) = FrameHead::of(frames) else { return self.end(frames) };
        let Some(fragment) = fragment(first, frames) else { return self.end(frames) };
        let mut rest = frames.get(FRAME_HEAD_BYTES + first.length..).unwrap_or_default();
        let joined;
        let block = match rest.is_empty() {
            true => fragment,
            false => {
                let mut fragments = fragment.to_vec();
                while let Some(head) = FrameHead::of(rest) {
                    let end = FRAME_HEAD_BYTES + head.length;
                    fragments.extend_from_slice(rest.get(FRAME_HEAD_BYTES..end).unwrap_or_default());
                    rest = rest.get(end..).unwrap_or_default();
                }
                joined = fragments;
                &joined
            }
        };
        let kind = match first.stream > self.latest_stream {
            true => BlockKind::Request { is_whole: first.flags & END_STREAM != 0 },
            false => BlockKind::Trailers,
        };
        self.latest_stream = self.latest_stream.max(first.stream);
        match self.blocks.judge(block, kind) {
            Judgement::Plain => Step::Pass(frames.len()),
            Judgement::Rewritten(block) => Step::Replace(frames.len(), header_frames(first, &block)),
        }
    }

    /// Ends the connection behind frames that are not allowed, which the library reads first.
    fn end(&mut self, input: &[u8]) -> Step {
        self.is_over = true;
        (self.block, self.held) = (Block::default(), 0);
        Step::Replace(input.len(), [input, &FATAL].concat().as_slice().into())
    }

    /// Whether the client has acknowledged the end of the connection. Not noticed if the frame comes in pieces.
    pub(super) fn is_end_acknowledged(&self) -> bool {
        self.is_end_acknowledged
    }

    /// Whether another frame may follow those that have passed.
    pub(super) fn are_whole(&self) -> bool {
        self.preface == PREFACE_BYTES && self.payload == 0 && !self.is_over
    }

    /// The most memory that the block that has begun may take, in bytes: each of its bytes may name a header.
    pub(super) fn memory(&self) -> usize {
        self.held.saturating_mul(HEADER_BYTES).min(MAX_BLOCK_BYTES)
    }
}

/// The part of the block in its first frame, without padding and priority. `None` if they are longer than the frame.
fn fragment(head: FrameHead, frames: &[u8]) -> Option<&[u8]> {
    let mut payload = frames.get(FRAME_HEAD_BYTES..FRAME_HEAD_BYTES + head.length)?;
    if head.flags & PADDED != 0 {
        let (padding, rest) = payload.split_first()?;
        payload = rest.get(..rest.len().checked_sub(usize::from(*padding))?)?;
    }
    if head.flags & PRIORITY != 0 {
        payload = payload.get(PRIORITY_BYTES..)?;
    }
    Some(payload)
}

/// The frames of a rewritten block.
fn header_frames(first: FrameHead, block: &[u8]) -> BytesMut {
    let mut frames =
        BytesMut::with_capacity(block.len() + FRAME_HEAD_BYTES * (1 + block.len() / MAX_PAYLOAD_BYTES));
    let mut rest = block;
    let mut is_first = true;
    loop {
        let (fragment, after) = rest.split_at(rest.len().min(MAX_PAYLOAD_BYTES));
        rest = after;
        let flags = if rest.is_empty() { END_HEADERS } else { 0 };
        let head = match std::mem::replace(&mut is_first, false) {
            true => FrameHead { length: fragment.len(), flags: flags | first.flags & END_STREAM, ..first },
            false => FrameHead { length: fragment.len(), kind: CONTINUATION, flags, ..first },
        };
        head.write(&mut frames);
        frames.put_slice(fragment);
        if rest.is_empty() {
            return frames;
        }
    }
}

#[cfg(test)]
mod tests;
