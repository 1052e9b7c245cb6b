//! Writes the content of a part.

use crate::Part;
use crc32fast::Hasher;
use flate2::{Compression, write::DeflateEncoder};
use std::io::{self, Write};

/// Sees the content of a part, in order.
pub type Observer<'a> = &'a mut dyn FnMut(&[u8]);

/// Compresses content as it is written, which is never held as a whole.
pub struct PartWriter<'a> {
    encoder: DeflateEncoder<Vec<u8>>,
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
            encoder: DeflateEncoder::new(Vec::new(), Compression::default()),
            hasher: Hasher::new(),
            length: 0,
            observe,
            waiting: Vec::with_capacity(BUFFER),
        };
        // Writing to a vector cannot fail. A flush ends the last block at a byte boundary.
        let _ = write(&mut writer).and_then(|()| writer.pass_on()).and_then(|()| writer.encoder.flush());
        let mut deflated = std::mem::take(writer.encoder.get_mut());
        deflated.shrink_to_fit();
        Part { deflated: deflated.into(), checksum: writer.hasher.finalize(), length: writer.length }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.hasher.update(&self.waiting);
        self.length += self.waiting.len() as u64;
        if let Some(observe) = &mut self.observe {
            observe(&self.waiting);
        }
        self.encoder.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }
}

impl Write for PartWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.waiting.len() + bytes.len() > BUFFER {
            self.pass_on()?;
        }
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on()
    }
}
