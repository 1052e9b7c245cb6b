//! The size of the frames in which lists and watches are streamed.

use pintle_offload::LIGHT;

/// The size at which a frame gets no more objects, in bytes: a client that does not read holds one frame and one object.
pub(super) const FRAME_BYTES: usize = 128 * 1024;
/// The bytes of object JSON at which a frame gets no more objects, however small its encoding of them.
pub(super) const READ_BYTES: usize = 8 * LIGHT;
