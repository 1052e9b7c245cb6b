//! A finished, compressed document.

use bytes::Bytes;
use flate2::read::DeflateDecoder;
use pintle_gzip::{HEADER, Part, PartWriter, Trailer};
use sha2::{Digest, Sha512};
use std::{
    fmt::Write as _,
    io::{self, Read as _, Write},
    sync::Arc,
    time::SystemTime,
};

/// A compressed document with the hash of its source. It consists of separately compressed parts, so that documents can
/// share a part, and a document with one changed part is assembled without compressing the others again.
#[derive(Debug, Clone)]
pub struct Document {
    parts: Box<[Arc<Part>]>,
    hash: String,
    made: SystemTime,
}

impl Document {
    /// Creates the document that `write` writes, with the hash of its content. Content is compressed and hashed as it
    /// is written and never held as a whole.
    pub(crate) fn written_by(write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>) -> Document {
        let mut digest = Sha512::new();
        let part = hashed_part(&mut digest, write);
        Document { parts: [part].into(), hash: hexadecimal(digest), made: SystemTime::now() }
    }

    /// Assembles a document from parts.
    pub(crate) fn of(parts: Vec<Arc<Part>>, hash: String) -> Document {
        Document { parts: parts.into(), hash, made: SystemTime::now() }
    }

    /// Takes the hash of the same document in another encoding.
    pub(crate) fn with_hash_of(self, other: &Document) -> Document {
        Document { hash: other.hash.clone(), ..self }
    }

    /// The document in gzip form, as shared pieces.
    pub fn gzip_pieces(&self) -> Vec<Bytes> {
        let mut gzip = vec![Bytes::from_static(&HEADER)];
        let mut trailer = Trailer::default();
        for part in &self.parts {
            gzip.push(part.deflated().clone());
            trailer.add(part);
        }
        gzip.push(Bytes::copy_from_slice(&trailer.finish()));
        gzip
    }

    /// The uncompressed length in bytes.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.length() as usize).sum()
    }

    /// The uncompressed document, inflated piece by piece: it may be many times larger than its compressed form.
    pub fn pieces(&self) -> impl Iterator<Item = Bytes> + Send + use<> {
        Pieces { parts: self.parts.clone().into_vec().into_iter(), reader: None }
    }

    /// The document in gzip form, in one piece.
    pub fn gzip(&self) -> Bytes {
        self.gzip_pieces().concat().into()
    }

    /// The uncompressed document in one piece.
    pub fn content(&self) -> Bytes {
        self.pieces().collect::<Vec<_>>().concat().into()
    }

    /// The hash of the document, in upper-case hexadecimal digits: its entity tag (in quotes), and the `hash` in its
    /// URL in the index. A response to a request with the right hash may be cached for ever.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The time when the document was built, which is not before the last change of its source.
    pub fn made(&self) -> SystemTime {
        self.made
    }

    /// The size of the parts that no other document shares, in bytes.
    pub(crate) fn own_size(&self) -> usize {
        let own = self.parts.iter().filter(|part| Arc::strong_count(part) == 1);
        own.map(|part| part.deflated().len() + size_of::<Part>()).sum()
    }
}

/// Inflates a document piece by piece.
struct Pieces {
    parts: std::vec::IntoIter<Arc<Part>>,
    reader: Option<DeflateDecoder<io::Cursor<Bytes>>>,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut piece = Vec::new();
        while piece.is_empty() {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let part = self.parts.next()?;
                    self.reader.insert(DeflateDecoder::new(io::Cursor::new(part.deflated().clone())))
                }
            };
            // A part has no final block, so the reader reports an error after the part's content.
            let read = reader.take(PIECE).read_to_end(&mut piece);
            if read.is_err() || piece.is_empty() {
                self.reader = None;
            }
        }
        Some(piece.into())
    }
}

/// The size of inflated pieces, in bytes.
const PIECE: u64 = 64 * 1024;

/// Creates the part that `write` writes.
pub(crate) fn written_part(write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>) -> Arc<Part> {
    Arc::new(PartWriter::write_part(None, write))
}

/// As [`written_part`], and adds the content to a hash.
pub(crate) fn hashed_part(
    digest: &mut Sha512,
    write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>,
) -> Arc<Part> {
    Arc::new(PartWriter::write_part(Some(&mut |content| digest.update(content)), write))
}

/// Creates a part of these bytes.
pub(crate) fn part_of(bytes: &[u8]) -> Arc<Part> {
    written_part(|out| out.write_all(bytes))
}

/// The hash of texts; their boundaries are hashed too.
pub(crate) fn hash_of<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut digest = Sha512::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    hexadecimal(digest)
}

/// Formats a hash in upper-case hexadecimal digits.
pub(crate) fn hexadecimal(digest: Sha512) -> String {
    let digest = digest.finalize();
    let mut hash = String::with_capacity(digest.len() * 2);
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02X}");
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_one_document() {
        let long = "many words ".repeat(10_000);
        let parts = vec![part_of(b"{"), part_of(long.as_bytes()), part_of(b""), part_of(b"}")];
        let document = Document::of(parts, hash_of(["a"].into_iter()));
        let expected = format!("{{{long}}}");
        assert_eq!(document.content(), expected.as_bytes());
        assert_eq!(document.length(), expected.len());
        assert!(document.pieces().all(|piece| piece.len() as u64 <= PIECE));
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&document.gzip()[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, expected);
    }

    #[test]
    fn hashes_tell_where_texts_end() {
        assert_ne!(hash_of(["ab", "c"].into_iter()), hash_of(["a", "bc"].into_iter()));
        assert_eq!(hash_of([].into_iter()).len(), 128);
    }
}
