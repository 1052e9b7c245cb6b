//! A finished document.

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sha2::{Digest, Sha512};
use std::{
    fmt::Write as _,
    io::{self, Read as _, Write},
};

/// A document as it is kept: compressed, with the hash of what it was made from.
#[derive(Debug, Clone)]
pub struct Document {
    gzip: Bytes,
    hash: String,
}

impl Document {
    /// The document that `write` writes. It is compressed and hashed as it comes, never held as a whole.
    pub(crate) fn written_by(write: impl FnOnce(&mut DocumentWriter) -> io::Result<()>) -> Document {
        let mut writer = DocumentWriter {
            encoder: GzEncoder::new(Vec::new(), Compression::default()),
            digest: Sha512::new(),
            waiting: Vec::with_capacity(BUFFER),
        };
        let written =
            write(&mut writer).and_then(|()| writer.pass_on()).and_then(|()| writer.encoder.finish());
        // Writing to a vector cannot fail, nor can writing to a string.
        let gzip = Bytes::from(written.unwrap_or_default());
        let digest = writer.digest.finalize();
        let mut hash = String::with_capacity(digest.len() * 2);
        for byte in digest {
            let _ = write!(hash, "{byte:02X}");
        }
        Document { gzip, hash }
    }

    /// The same document in another form has the same hash.
    pub(crate) fn with_hash_of(self, other: &Document) -> Document {
        Document { hash: other.hash.clone(), ..self }
    }

    /// The document compressed by gzip, for clients that accept it.
    pub fn gzip(&self) -> Bytes {
        self.gzip.clone()
    }

    /// The document itself, decompressed for this call.
    pub fn content(&self) -> Bytes {
        let mut content = Vec::new();
        // It was compressed by `new`, so that it can be decompressed.
        let _ = GzDecoder::new(self.gzip.as_ref()).read_to_end(&mut content);
        content.into()
    }

    /// The hash of the document, in upper-case hexadecimal digits: its entity tag (in quotes), and the `hash` in the
    /// URL by which the index names it. A document asked for with its own hash may be cached for ever.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// Where a document is written to.
pub(crate) struct DocumentWriter {
    encoder: GzEncoder<Vec<u8>>,
    digest: Sha512,
    /// What is not hashed and compressed yet: JSON comes in very small pieces.
    waiting: Vec<u8>,
}

/// How much is hashed and compressed at a time.
const BUFFER: usize = 32 * 1024;

impl DocumentWriter {
    fn pass_on(&mut self) -> io::Result<()> {
        self.digest.update(&self.waiting);
        self.encoder.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }
}

impl Write for DocumentWriter {
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
