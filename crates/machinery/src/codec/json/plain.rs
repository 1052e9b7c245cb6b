//! The bytes of a string that stand for themselves.

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// Returns the number of bytes before the first quote, backslash or control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    length_before(
        bytes,
        |word| same(word, b'"') | same(word, b'\\') | smaller(word, b' '),
        |byte| matches!(byte, b'"' | b'\\' | ..b' '),
    )
}

/// Returns the number of bytes before the first that [`write_escaped`](super::write_escaped) may have to escape. `0xe2`
/// is the first byte of the two line separators, and of other characters.
pub(super) fn unescaped_length(bytes: &[u8]) -> usize {
    // `"` and `&` differ in one bit, and so do the brackets.
    length_before(
        bytes,
        |word| {
            same(word | (ONES * 0x04), b'&')
                | same(word | (ONES * 0x02), b'>')
                | same(word, b'\\')
                | same(word, 0xe2)
                | smaller(word, b' ')
        },
        |byte| matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2 | ..b' '),
    )
}

/// Returns the number of bytes before the first special one. `marks` tests eight bytes at a time: in a word of little
/// endian, the lowest mark is in the first special byte.
fn length_before(bytes: &[u8], marks: impl Fn(u64) -> u64, is_special: impl Fn(u8) -> bool) -> usize {
    let before = |word: [u8; 8]| match marks(u64::from_le_bytes(word)) {
        0 => None,
        marks => Some(marks.trailing_zeros() as usize / 8),
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(plain) = before(*word) {
            return index * 8 + plain;
        }
    }
    match bytes.last_chunk::<8>() {
        // The bytes before the rest are known to be plain.
        Some(word) => before(*word).map_or(bytes.len(), |plain| bytes.len() - 8 + plain),
        None => rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len()),
    }
}

/// Marks the bytes that are smaller than a limit of at most 128
/// (<https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord>). The lowest mark is correct; a borrow may
/// mark higher bytes wrongly.
fn smaller(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH
}

/// Marks the bytes that are equal to one, as [`smaller`] does.
fn same(word: u64, byte: u8) -> u64 {
    smaller(word ^ (ONES * u64::from(byte)), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_bytes_are_counted_as_one_by_one(bytes in prop::collection::vec(any::<u8>(), 0..40), common in "[a-z\u{80}-\u{ff}]{0,30}[\"\\\\\u{1f}<>&\u{2028}]?.{0,9}") {
            for bytes in [&bytes[..], common.as_bytes()] {
                let before = |special: &dyn Fn(u8) -> bool| {
                    bytes.iter().position(|&byte| special(byte)).unwrap_or(bytes.len())
                };
                let plain = before(&|byte| byte == b'"' || byte == b'\\' || byte < b' ');
                prop_assert_eq!(plain_length(bytes), plain);
                let unescaped = before(&|byte| b"\"\\<>&\xe2".contains(&byte) || byte < b' ');
                prop_assert_eq!(unescaped_length(bytes), unescaped);
            }
        }
    }
}
