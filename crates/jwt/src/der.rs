//! The subset of DER that key files need: values with a tag and a definite length.

/// The tags of DER values.
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
/// The tags of `[0]` and `[1]`, which wrap another value.
pub(crate) const EXPLICIT_0: u8 = 0xa0;
pub(crate) const EXPLICIT_1: u8 = 0xa1;

/// Reads values in sequence.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next value, with its tag.
    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            short if short < 0x80 => (usize::from(short), rest),
            // Keys need no lengths of more than three bytes.
            long @ 0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// The next value, if it has this tag; otherwise the reader does not advance.
    pub(crate) fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (found, value) = ahead.any()?;
        (found == tag).then(|| {
            *self = ahead;
            value
        })
    }

    /// A reader of the values within the next one.
    pub(crate) fn nested(&mut self, tag: u8) -> Option<Reader<'a>> {
        self.value(tag).map(Reader)
    }

    /// The next value, a non-negative integer, without its leading zero byte.
    pub(crate) fn unsigned(&mut self) -> Option<&'a [u8]> {
        match self.value(INTEGER)? {
            [0] => Some(&[0]),
            [0, rest @ ..] => Some(rest),
            [first, ..] if *first >= 0x80 => None,
            [] => None,
            value => Some(value),
        }
    }

    /// The bytes of the next value, a bit string of whole bytes.
    pub(crate) fn bit_string(&mut self) -> Option<&'a [u8]> {
        match self.value(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }

    /// Whether all input was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

/// Encodes a value with its tag and length.
pub(crate) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(length + 5);
    bytes.push(tag);
    match length {
        0..0x80 => bytes.push(length as u8),
        _ => {
            let be = length.to_be_bytes();
            let significant = be.iter().position(|byte| *byte != 0).unwrap_or_default();
            let significant = be.get(significant..).unwrap_or_default();
            bytes.push(0x80 | significant.len() as u8);
            bytes.extend_from_slice(significant);
        }
    }
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Encodes a non-negative integer.
pub(crate) fn unsigned(be: &[u8]) -> Vec<u8> {
    let start = be.iter().position(|byte| *byte != 0).unwrap_or(be.len());
    match be.get(start..).unwrap_or_default() {
        [] => value(INTEGER, &[&[0]]),
        significant @ [first, ..] if *first >= 0x80 => value(INTEGER, &[&[0], significant]),
        significant => value(INTEGER, &[significant]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for length in [0, 1, 127, 128, 255, 256, 65_536] {
            let bytes = vec![7; length];
            let written = value(OCTET_STRING, &[&bytes]);
            let mut reader = Reader(&written);
            assert_eq!(reader.value(OCTET_STRING), Some(&*bytes));
            assert!(reader.is_at_end());
        }
        for (number, expected) in
            [(&[0, 0, 5][..], &[5][..]), (&[0x80], &[0x80]), (&[], &[0]), (&[0, 0xff, 1], &[0xff, 1])]
        {
            assert_eq!(Reader(&unsigned(number)).unsigned(), Some(expected));
        }
    }

    #[test]
    fn what_is_cut_short_or_of_no_definite_length_is_refused() {
        for bytes in
            [&[][..], &[2], &[2, 1], &[2, 0x80, 0, 0], &[2, 0x84, 0, 0, 0, 1, 1], &[2, 0x81], &[2, 1, 0x80]]
        {
            assert_eq!(Reader(bytes).unsigned(), None, "{bytes:?}");
        }
    }
}
