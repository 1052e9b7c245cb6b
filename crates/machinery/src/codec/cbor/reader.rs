//! Reads the heads of data items.

use crate::codec::error::{DecodeError, Fallible};

/// The tag of self-described CBOR.
pub(super) const SELF_DESCRIBED: u64 = 55799;

/// The byte that ends an item of indefinite length.
const BREAK: u8 = 0xff;

/// The major type of a data item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Major {
    Positive,
    Negative,
    Bytes,
    Text,
    Array,
    Map,
    Tag,
    Primitive,
}

impl Major {
    /// The type of the item that begins with this byte.
    pub(super) fn of(first: u8) -> Major {
        match first >> 5 {
            0 => Major::Positive,
            1 => Major::Negative,
            2 => Major::Bytes,
            3 => Major::Text,
            4 => Major::Array,
            5 => Major::Map,
            6 => Major::Tag,
            _ => Major::Primitive,
        }
    }

    /// The name in error messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Major::Positive => "positive integer",
            Major::Negative => "negative integer",
            Major::Bytes => "byte string",
            Major::Text => "UTF-8 text string",
            Major::Array => "array",
            Major::Map => "map",
            Major::Tag => "tag",
            Major::Primitive => "primitives",
        }
    }
}

/// The head of a data item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) major: Major,
    /// The low five bits of the first byte.
    pub(super) info: u8,
    /// The argument; meaningless for an item of indefinite length.
    pub(super) value: u64,
}

impl Head {
    pub(super) fn is_indefinite(self) -> bool {
        self.info == 31
    }

    /// The float that a primitive is.
    pub(super) fn float(self) -> Option<f64> {
        match (self.major, self.info) {
            (Major::Primitive, 25) => Some(half_to_float(self.value as u16)),
            (Major::Primitive, 26) => Some(f64::from(f32::from_bits(self.value as u32))),
            (Major::Primitive, 27) => Some(f64::from_bits(self.value)),
            _ => None,
        }
    }

    /// Whether this is `null` or `undefined`.
    pub(super) fn is_nil(self) -> bool {
        self.major == Major::Primitive && matches!(self.info, 22 | 23)
    }
}

/// The value of a half-precision float, which is exact in double precision.
fn half_to_float(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (fraction + 1024.0) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

/// A position in bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'d> {
    bytes: &'d [u8],
    at: usize,
}

impl<'d> Reader<'d> {
    pub(super) fn new(bytes: &'d [u8]) -> Reader<'d> {
        Reader { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The bytes from a position to the present one.
    pub(super) fn since(&self, start: usize) -> &'d [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn take(&mut self, length: usize) -> Fallible<&'d [u8]> {
        let taken =
            self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or_else(unexpected_end)?;
        self.at += length;
        Ok(taken)
    }

    /// Reads the break of an item of indefinite length, if it is next.
    pub(super) fn take_break(&mut self) -> bool {
        let is_break = self.peek() == Some(BREAK);
        self.at += usize::from(is_break);
        is_break
    }

    /// Reads a head. Its argument need not be as short as possible.
    pub(super) fn head(&mut self) -> Fallible<Head> {
        let first = self.take(1)?.first().copied().unwrap_or_default();
        let (major, info) = (Major::of(first), first & 0x1f);
        let value = match info {
            0..24 => u64::from(info),
            24..28 => {
                let argument = self.take(1 << (info - 24))?;
                argument.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
            }
            31 => {
                let message = match major {
                    Major::Positive | Major::Negative | Major::Tag => {
                        format!("cbor: invalid additional information 31 for type {}", major.name())
                    }
                    Major::Primitive => "cbor: unexpected \"break\" code".to_owned(),
                    Major::Bytes | Major::Text | Major::Array | Major::Map => {
                        return Ok(Head { major, info, value: 0 });
                    }
                };
                return Err(DecodeError::cbor(message));
            }
            _ => {
                let name = major.name();
                return Err(DecodeError::cbor(format!(
                    "cbor: invalid additional information {info} for type {name}"
                )));
            }
        };
        Ok(Head { major, info, value })
    }

    /// Skips the tags of self-described CBOR.
    pub(super) fn skip_self_described(&mut self) -> Fallible<()> {
        loop {
            let start = self.at;
            if self.peek().map(Major::of) != Some(Major::Tag) {
                return Ok(());
            }
            if self.head()?.value != SELF_DESCRIBED {
                self.at = start;
                return Ok(());
            }
        }
    }

    /// Skips one well-formed item, without recursion.
    pub(super) fn skip(&mut self) -> Fallible<()> {
        // The items that each open container still needs; `None` for one of indefinite length.
        let mut open: Vec<Option<u64>> = Vec::new();
        loop {
            let head = self.head()?;
            match head.major {
                Major::Bytes | Major::Text if head.is_indefinite() => {
                    while !self.take_break() {
                        let chunk = self.head()?.value;
                        self.take(usize::try_from(chunk).unwrap_or(usize::MAX))?;
                    }
                }
                Major::Bytes | Major::Text => {
                    self.take(usize::try_from(head.value).unwrap_or(usize::MAX))?;
                }
                Major::Array | Major::Map if head.is_indefinite() => open.push(None),
                Major::Array => open.push(Some(head.value)),
                Major::Map => open.push(Some(head.value.saturating_mul(2))),
                Major::Tag => continue,
                Major::Positive | Major::Negative | Major::Primitive => {}
            }
            loop {
                match open.last_mut() {
                    None => return Ok(()),
                    Some(Some(left)) if *left > 0 => {
                        *left -= 1;
                        break;
                    }
                    Some(None) if !self.take_break() => break,
                    Some(_) => drop(open.pop()),
                }
            }
        }
    }

    /// Whether each chunk of a string of indefinite length, whose head was read, is UTF-8.
    pub(super) fn chunks_are_texts(&self) -> bool {
        let mut reader = self.clone();
        while !reader.take_break() {
            let chunk =
                reader.head().and_then(|head| reader.take(usize::try_from(head.value).unwrap_or(usize::MAX)));
            match chunk {
                Ok(chunk) if std::str::from_utf8(chunk).is_err() => return false,
                Ok(_) => {}
                // The end is found when the string is read.
                Err(_) => return true,
            }
        }
        true
    }

    /// Reads the contents of a string behind its head. `None` when it consists of chunks, which are in `joined` then.
    pub(super) fn string(&mut self, head: Head, joined: &mut Vec<u8>) -> Fallible<Option<&'d [u8]>> {
        if !head.is_indefinite() {
            return self.take(usize::try_from(head.value).unwrap_or(usize::MAX)).map(Some);
        }
        while !self.take_break() {
            let chunk = self.head()?.value;
            joined.extend_from_slice(self.take(usize::try_from(chunk).unwrap_or(usize::MAX))?);
        }
        Ok(None)
    }
}

pub(super) fn unexpected_end() -> Box<DecodeError> {
    DecodeError::cbor("unexpected EOF")
}
