//! The target of the reader of PEM blocks.

use pintle_go_forms::{PemBlock, PemBlocks, base64};

/// Finds the blocks of a text. Each is found again when it is written in the usual form.
pub(crate) fn blocks(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for PemBlock { label, contents, .. } in PemBlocks::of(&text) {
        let body = base64::encode(&contents);
        let written = format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        let found: Vec<PemBlock<'_>> = PemBlocks::of(&written).collect();
        assert_eq!(found, [PemBlock { label, has_headers: false, contents }]);
    }
}
