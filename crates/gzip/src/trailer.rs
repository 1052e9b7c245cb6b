//! The end of a body.

use crate::Part;
use crc32fast::Hasher;

/// Collects the checksum and the length of the parts of a body.
#[derive(Debug, Clone, Default)]
pub struct Trailer {
    hasher: Hasher,
    length: u64,
}

impl Trailer {
    /// Notes that the body goes on with a part.
    pub fn add(&mut self, part: &Part) {
        self.hasher.combine(&Hasher::new_with_initial_len(part.checksum(), part.length()));
        self.length += part.length();
    }

    /// The bytes that end the body.
    pub fn finish(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        // An empty final block: the parts end at byte boundaries, and none has a final block.
        let (end, numbers) = bytes.split_at_mut(2);
        end.copy_from_slice(&[3, 0]);
        let (checksum, length) = numbers.split_at_mut(4);
        checksum.copy_from_slice(&self.hasher.finalize().to_le_bytes());
        // The length modulo 2^32.
        length.copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes
    }
}
