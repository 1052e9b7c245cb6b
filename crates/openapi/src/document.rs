//! A finished document.

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sha2::{Digest, Sha512};
use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
};

/// A document as it is kept: compressed, with the hash of what it was made from.
#[derive(Debug, Clone)]
pub struct Document {
    gzip: Bytes,
    hash: String,
}

impl Document {
    pub(crate) fn new(content: &[u8]) -> Document {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(content).and_then(|()| encoder.finish());
        let digest = Sha512::digest(content);
        let mut hash = String::with_capacity(digest.len() * 2);
        for byte in digest {
            // Writing to a string cannot fail.
            let _ = write!(hash, "{byte:02X}");
        }
        // Nor can writing to a vector.
        Document { gzip: written.unwrap_or_default().into(), hash }
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
