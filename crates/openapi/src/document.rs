//! A finished document.

use bytes::Bytes;
use flate2::{Compression, Crc, read::DeflateDecoder, write::DeflateEncoder};
use sha2::{Digest, Sha512};
use std::{
    fmt::Write as _,
    io::{self, Read as _, Write},
    sync::Arc,
    time::SystemTime,
};

/// A document as it is kept: compressed, with the hash of what it was made from. It is made of parts that are compressed
/// each for itself, so that documents that have a part in common share it and a document with another part is put
/// together without compressing the rest again.
#[derive(Debug, Clone)]
pub struct Document {
    parts: Box<[Arc<Part>]>,
    hash: String,
    made: SystemTime,
}

impl Document {
    /// The document that `write` writes, with the hash of its content. It is compressed and hashed as it comes, never held
    /// as a whole.
    pub(crate) fn written_by(write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>) -> Document {
        let mut digest = Sha512::new();
        let part = Part::hashed_by(&mut digest, write);
        Document { parts: [part].into(), hash: hexadecimal(digest), made: SystemTime::now() }
    }

    /// The document made of these parts.
    pub(crate) fn of(parts: Vec<Arc<Part>>, hash: String) -> Document {
        Document { parts: parts.into(), hash, made: SystemTime::now() }
    }

    /// The same document in another form has the same hash.
    pub(crate) fn with_hash_of(self, other: &Document) -> Document {
        Document { hash: other.hash.clone(), ..self }
    }

    /// The pieces of the document compressed by gzip, for clients that accept it. They are shared, not copied.
    pub fn gzip_pieces(&self) -> Vec<Bytes> {
        // Deflate by an unknown system, no name and no time.
        const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
        // A last block with nothing in it: the parts end on whole bytes, and none of them is the last.
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

    /// The length of the document in bytes.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.crc.amount() as usize).sum()
    }

    /// The document, decompressed piece by piece: it may be many times larger than its compressed form.
    pub fn pieces(&self) -> impl Iterator<Item = Bytes> + Send + use<> {
        Pieces { parts: self.parts.clone().into_vec().into_iter(), reader: None }
    }

    /// The document compressed by gzip, in one piece.
    pub fn gzip(&self) -> Bytes {
        self.gzip_pieces().concat().into()
    }

    /// The document in one piece.
    pub fn content(&self) -> Bytes {
        self.pieces().collect::<Vec<_>>().concat().into()
    }

    /// The hash of the document, in upper-case hexadecimal digits: its entity tag (in quotes), and the `hash` in the
    /// URL by which the index names it. A document asked for with its own hash may be cached for ever.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// When the document was made, which is not before what it tells of last changed.
    pub fn made(&self) -> SystemTime {
        self.made
    }

    /// How much memory the parts take that no other document has.
    pub(crate) fn own_size(&self) -> usize {
        let own = self.parts.iter().filter(|part| Arc::strong_count(part) == 1);
        own.map(|part| part.deflated.len() + size_of::<Part>()).sum()
    }
}

/// A document on its way to a client.
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
            // A part has no last block, which the reader complains of after all of the part's content.
            let read = reader.take(PIECE).read_to_end(&mut piece);
            if read.is_err() || piece.is_empty() {
                self.reader = None;
            }
        }
        Some(piece.into())
    }
}

/// How many bytes of a document are decompressed at once.
const PIECE: u64 = 64 * 1024;

/// A part of a document: deflate blocks, none of them the last one, that refer to nothing before them.
#[derive(Debug)]
pub(crate) struct Part {
    deflated: Bytes,
    crc: Crc,
}

impl Part {
    /// The part that `write` writes.
    pub(crate) fn written_by(write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>) -> Arc<Part> {
        Arc::new(Part::written(None, write))
    }

    /// The same, whose content goes into a hash.
    pub(crate) fn hashed_by(
        digest: &mut Sha512,
        write: impl FnOnce(&mut PartWriter<'_>) -> io::Result<()>,
    ) -> Arc<Part> {
        Arc::new(Part::written(Some(digest), write))
    }

    /// A part of exactly these bytes.
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
        // Writing to a vector cannot fail. A flush ends the last block on a whole byte.
        let _ = write(&mut writer).and_then(|()| writer.pass_on()).and_then(|()| writer.encoder.flush());
        let mut deflated = std::mem::take(writer.encoder.get_mut());
        deflated.shrink_to_fit();
        Part { deflated: deflated.into(), crc: writer.crc }
    }
}

/// The hash of texts, each with where it ends.
pub(crate) fn hash_of<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut digest = Sha512::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    hexadecimal(digest)
}

/// A hash as documents have it.
pub(crate) fn hexadecimal(digest: Sha512) -> String {
    let digest = digest.finalize();
    let mut hash = String::with_capacity(digest.len() * 2);
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02X}");
    }
    hash
}

/// Where a part is written to.
pub(crate) struct PartWriter<'a> {
    encoder: DeflateEncoder<Vec<u8>>,
    crc: Crc,
    digest: Option<&'a mut Sha512>,
    /// What is not hashed and compressed yet: JSON comes in very small pieces.
    waiting: Vec<u8>,
}

/// How much is hashed and compressed at a time.
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
