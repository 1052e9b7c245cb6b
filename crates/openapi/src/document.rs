//! A finished, compressed document.

use bytes::Bytes;
use flate2::{Compression, Crc, read::DeflateDecoder, write::DeflateEncoder};
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
        let part = Part::hashed_by(&mut digest, write);
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
        // Deflate, unknown system, no name and no time.
        const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
        // An empty final block: the parts end at byte boundaries, and none has a final block.
        const END: [u8; 2] = [3, 0];
        let mut gzip = vec![Bytes::from_static(&HEADER)];
        let mut crc = Crc::new();
        for part in &self.parts {
            gzip.push(part.deflated.clone());
            crc.combine(&part.crc);
        }
        gzip.push([&END[..], &crc.sum().to_le_bytes(), &crc.amount().to_le_bytes()].concat().into());
        gzip
    }

    /// The uncompressed length in bytes.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.crc.amount() as usize).sum()
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
        own.map(|part| part.deflated.len() + size_of::<Part>()).sum()
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
                    self.reader.insert(DeflateDecoder::new(io::Cursor::new(part.deflated.clone())))
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

/// A part of a document: deflate blocks, none of them final, without references to earlier parts.
#[derive(Debug)]
pub(crate) struct Part {
    deflated: Bytes,
    crc: Crc,
}

impl Part {
    /// Creates the part that `write` writes.
    pub(crate) fn written_by(write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>) -> Arc<Part> {
        Arc::new(Part::written(None, write))
    }

    /// As [`Part::written_by`], and adds the content to a hash.
    pub(crate) fn hashed_by(
        digest: &mut Sha512,
        write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>,
    ) -> Arc<Part> {
        Arc::new(Part::written(Some(digest), write))
    }

    /// Creates a part of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Arc<Part> {
        Part::written_by(|out| out.write_all(bytes))
    }

    fn written(
        digest: Option<&mut Sha512>,
        write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>,
    ) -> Part {
        let mut writer = PartWriter {
            encoder: DeflateEncoder::new(Vec::new(), Compression::default()),
            crc: Crc::new(),
            digest,
            waiting: Vec::with_capacity(BUFFER),
        };
        // Writing to a vector cannot fail. A flush ends the last block at a byte boundary.
        let _ = write(&mut writer).and_then(|()| writer.pass_on()).and_then(|()| writer.encoder.flush());
        let mut deflated = std::mem::take(writer.encoder.get_mut());
        deflated.shrink_to_fit();
        Part { deflated: deflated.into(), crc: writer.crc }
    }
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

/// The writer of a part.
pub(crate) struct PartWriter<'a> {
    encoder: DeflateEncoder<Vec<u8>>,
    crc: Crc,
    digest: Option<&'a mut Sha512>,
    /// Content that is not hashed and compressed yet: JSON is written in very small pieces.
    waiting: Vec<u8>,
}

/// The size in bytes at which content is hashed and compressed.
const BUFFER: usize = 32 * 1024;

impl PartWriter<'_> {
    fn pass_on(&mut self) -> io::Result<()> {
        self.crc.update(&self.waiting);
        if let Some(digest) = &mut self.digest {
            digest.update(&self.waiting);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_one_document() {
        let long = "many words ".repeat(10_000);
        let parts = vec![Part::of(b"{"), Part::of(long.as_bytes()), Part::of(b""), Part::of(b"}")];
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
