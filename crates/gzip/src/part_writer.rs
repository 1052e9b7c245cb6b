//! Writes the content of a part.

use crate::{Part, part::deflate};
use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress};
use std::io::{self, Write};

/// Sees the content of a part, in order.
pub type Observer<'a> = &'a mut dyn FnMut(&[u8]);

/// Compresses content as it is written, which is never held as a whole.
pub struct PartWriter<'a> {
    compress: Compress,
    deflated: Vec<u8>,
    hasher: Hasher,
    length: u64,
    observe: Option<Observer<'a>>,
    /// Content that is not compressed yet: JSON is written in very small pieces.
    waiting: Vec<u8>,
}

/// The size in bytes at which content is compressed.
const BUFFER: usize = 32 * 1024;

impl<'a> PartWriter<'a> {
    /// Creates the part that `write` writes. `observe` sees the content before it is compressed.
    pub fn write_part(
        observe: Option<Observer<'a>>,
        write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>,
    ) -> Part {
        let mut writer = PartWriter {
            compress: Compress::new(Compression::default(), false),
            deflated: Vec::with_capacity(BUFFER),
            hasher: Hasher::new(),
            length: 0,
            observe,
            waiting: Vec::with_capacity(BUFFER),
        };
        // The writer itself never fails, and its caller has nobody to tell.
        let _ = write(&mut writer);
        writer.pass_on(FlushCompress::Full);
        let PartWriter { mut deflated, hasher, length, .. } = writer;
        deflated.shrink_to_fit();
        Part { deflated: deflated.into(), checksum: hasher.finalize(), length }
    }

    fn pass_on(&mut self, flush: FlushCompress) {
        self.hasher.update(&self.waiting);
        self.length += self.waiting.len() as u64;
        if let Some(observe) = &mut self.observe {
            observe(&self.waiting);
        }
        deflate(&mut self.compress, &self.waiting, flush, &mut self.deflated);
        self.waiting.clear();
    }
}

impl Write for PartWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.waiting.len() + bytes.len() > BUFFER {
            self.pass_on(FlushCompress::None);
        }
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(FlushCompress::None);
        Ok(())
    }
}
