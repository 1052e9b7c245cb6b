//! Checks that bytes are one data item, before anything of it is decoded.

use super::reader::{Head, Major, Reader, unexpected_end};
use crate::codec::MAX_DEPTH;
use crate::codec::error::{DecodeError, Fallible};

/// The maximum number of pairs in a map.
const MAX_PAIRS: u64 = 2_097_152;
/// The maximum number of items in an array.
const MAX_ITEMS: u64 = 2_147_483_647;

/// A container whose items are being read.
struct Open {
    is_map: bool,
    /// The items that are still to come; `None` for indefinite length.
    left: Option<u64>,
    /// The items read, for indefinite lengths.
    read: u64,
    /// The tags in front of it count as levels.
    tags: usize,
}

/// Checks that the bytes are one well-formed item of bounded depth with acceptable floats and tags, and nothing else.
///
/// # Errors
/// The first departure, in the order of the bytes.
pub(super) fn check(bytes: &[u8]) -> Fallible<()> {
    if bytes.is_empty() {
        return Err(DecodeError::cbor("EOF"));
    }
    let mut reader = Reader::new(bytes);
    let mut open: Vec<Open> = Vec::new();
    let mut depth = 0;
    loop {
        let mut tags = 0;
        let mut head = read_head(&mut reader)?;
        while head.major == Major::Tag {
            if reader.left() == 0 {
                return Err(unexpected_end());
            }
            if matches!(head.value, 2 | 3) {
                return Err(unacceptable(Major::Tag, "bignum"));
            }
            head = read_head(&mut reader)?;
            tags += usize::from(head.major == Major::Tag);
            check_depth(depth + tags)?;
        }
        match head.major {
            Major::Bytes | Major::Text if head.is_indefinite() => chunks(&mut reader, head.major)?,
            Major::Bytes | Major::Text => {
                reader.take(length(head, "causing integer overflow")?)?;
            }
            Major::Array | Major::Map => {
                depth += tags + 1;
                check_depth(depth)?;
                let is_map = head.major == Major::Map;
                let left = match head.is_indefinite() {
                    true => None,
                    false => {
                        let count = length(head, "it would cause integer overflow")? as u64;
                        check_count(is_map, count)?;
                        Some(if is_map { count * 2 } else { count })
                    }
                };
                open.push(Open { is_map, left, read: 0, tags });
            }
            Major::Positive | Major::Negative | Major::Primitive | Major::Tag => {}
        }
        // Ends the containers that are complete.
        loop {
            let Some(last) = open.last_mut() else {
                return match reader.left() {
                    0 => Ok(()),
                    left => Err(DecodeError::cbor(format!(
                        "cbor: {left} bytes of extraneous data starting at index {}",
                        reader.at()
                    ))),
                };
            };
            match &mut last.left {
                Some(0) => {}
                Some(left) => {
                    *left -= 1;
                    break;
                }
                None if reader.left() == 0 => return Err(unexpected_end()),
                None if reader.take_break() => {
                    if last.is_map && last.read % 2 == 1 {
                        return Err(DecodeError::cbor("cbor: unexpected \"break\" code"));
                    }
                }
                None => {
                    last.read += 1;
                    check_count(last.is_map, if last.is_map { last.read / 2 } else { last.read })?;
                    break;
                }
            }
            depth -= last.tags + 1;
            open.pop();
        }
    }
}

fn read_head(reader: &mut Reader<'_>) -> Fallible<Head> {
    let head = reader.head()?;
    if head.major == Major::Primitive && head.info == 24 && head.value < 32 {
        return Err(DecodeError::cbor(format!(
            "cbor: invalid simple value {} for type {}",
            head.value,
            head.major.name()
        )));
    }
    match head.float() {
        Some(float) if float.is_nan() => Err(unacceptable(Major::Primitive, "floating-point NaN")),
        Some(float) if float.is_infinite() => Err(unacceptable(Major::Primitive, "floating-point infinity")),
        _ => Ok(head),
    }
}

fn chunks(reader: &mut Reader<'_>, major: Major) -> Fallible<()> {
    while !reader.take_break() {
        let found = reader.peek().map(Major::of).ok_or_else(unexpected_end)?;
        if found != major {
            let (found, name) = (found.name(), major.name());
            return Err(DecodeError::cbor(format!(
                "cbor: wrong element type {found} for indefinite-length {name}"
            )));
        }
        let head = read_head(reader)?;
        if head.is_indefinite() {
            let name = major.name();
            return Err(DecodeError::cbor(format!(
                "cbor: indefinite-length {name} chunk is not definite-length"
            )));
        }
        reader.take(length(head, "causing integer overflow")?)?;
    }
    Ok(())
}

fn length(head: Head, why: &str) -> Fallible<usize> {
    let length = i64::try_from(head.value).ok().and_then(|length| usize::try_from(length).ok());
    length.ok_or_else(|| {
        let (name, value) = (head.major.name(), head.value);
        DecodeError::cbor(format!("cbor: {name} length {value} is too large, {why}"))
    })
}

fn check_count(is_map: bool, count: u64) -> Fallible<()> {
    match is_map {
        true if count > MAX_PAIRS => Err(DecodeError::cbor(format!(
            "cbor: exceeded max number of key-value pairs {MAX_PAIRS} for CBOR map"
        ))),
        false if count > MAX_ITEMS => Err(DecodeError::cbor(format!(
            "cbor: exceeded max number of elements {MAX_ITEMS} for CBOR array"
        ))),
        _ => Ok(()),
    }
}

fn check_depth(depth: usize) -> Fallible<()> {
    match depth > MAX_DEPTH {
        true => Err(DecodeError::cbor(format!("cbor: exceeded max nested level {MAX_DEPTH}"))),
        false => Ok(()),
    }
}

fn unacceptable(major: Major, what: &str) -> Box<DecodeError> {
    let name = major.name();
    DecodeError::cbor(format!("cbor: data item of cbor type {name} is not accepted by protocol: {what}"))
}
