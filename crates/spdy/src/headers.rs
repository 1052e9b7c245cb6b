//! The headers of a stream.

use crate::FrameError;
use bytes::{Buf, BufMut};

/// The most bytes of the headers of a stream, decompressed and as they are sent.
pub const MAX_HEADER_BYTES: usize = 64 << 10;

/// The headers of a stream: names in lower case, each with a value. A value may be a list, whose items are separated by
/// a zero byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of a header, whose name is given in lower case; the first item of a list.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        value.split('\0').next()
    }

    /// Reads the headers from a decompressed block.
    ///
    /// # Errors
    /// When the block is malformed.
    pub(crate) fn read(mut block: &[u8]) -> Result<Headers, FrameError> {
        let count = number(&mut block)?;
        // Each header takes eight bytes at least.
        if count > block.len() / 8 {
            return Err(FrameError::Headers);
        }
        let mut headers = Vec::with_capacity(count);
        for _ in 0..count {
            let name = text(&mut block)?;
            let value = text(&mut block)?;
            headers.push((name.to_lowercase(), value));
        }
        match block {
            [] => Ok(Headers(headers)),
            _ => Err(FrameError::Headers),
        }
    }

    pub(crate) fn put(&self, block: &mut Vec<u8>) {
        block.put_u32(self.0.len() as u32);
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            block.put_u32(text.len() as u32);
            block.put_slice(text.as_bytes());
        }
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    /// Headers whose names are made lower case.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Headers {
        Headers(pairs.into_iter().map(|(name, value)| (name.into().to_lowercase(), value.into())).collect())
    }
}

fn number(block: &mut &[u8]) -> Result<usize, FrameError> {
    let number = block.try_get_u32().map_err(|_| FrameError::Headers)?;
    usize::try_from(number).map_err(|_| FrameError::Headers)
}

fn text(block: &mut &[u8]) -> Result<String, FrameError> {
    let length = number(block)?;
    let (text, rest) = block.split_at_checked(length).ok_or(FrameError::Headers)?;
    *block = rest;
    // The values of Kubernetes are text; what is no UTF-8 is replaced.
    Ok(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_names_and_malformed_blocks() {
        let headers = Headers::read(b"\0\0\0\x01\0\0\0\x02Ab\0\0\0\x03x\0y").unwrap();
        assert_eq!((headers.get("ab"), headers.get("c")), (Some("x"), None));
        let malformed: [&[u8]; 5] = [
            b"",
            b"\0\0\0\x01",
            b"\xff\xff\xff\xff\0\0\0\x01a\0\0\0\x01b",
            b"\0\0\0\x01\0\0\0\x01a\xff\xff\xff\xffb",
            b"\0\0\0\0rest",
        ];
        for block in malformed {
            assert!(matches!(Headers::read(block), Err(FrameError::Headers)), "{block:?}");
        }
    }

    proptest! {
        #[test]
        fn headers_survive_encoding_and_decoding(pairs in prop::collection::vec(("[a-z-]{0,9}", ".{0,40}"), 0..9)) {
            let headers: Headers = pairs.into_iter().collect();
            let mut block = Vec::new();
            headers.put(&mut block);
            prop_assert_eq!(Headers::read(&block).unwrap(), headers);
        }
    }
}
