//! The form in which metrics show contents and names that may be long or secret: by their hash.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The SHA-256 of a content as `sha256:…`, or "" for an empty content.
pub fn content_hash(content: &[u8]) -> String {
    if content.is_empty() {
        return String::new();
    }
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_shown_by_their_hash() {
        assert_eq!(content_hash(b""), "");
        assert_eq!(
            content_hash(b"a"),
            "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
        );
    }
}
