//! Reads and writes the blocks of PEM files.

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls_pki_types::pem::{PemObject, SectionKind};
use zeroize::Zeroizing;

type Section = (SectionKind, Vec<u8>);

/// The well-formed blocks of a file: their kinds and contents.
pub(crate) fn blocks(pem: &[u8]) -> impl Iterator<Item = (SectionKind, Zeroizing<Vec<u8>>)> {
    Section::pem_slice_iter(pem).filter_map(|block| {
        let (kind, der) = block.ok()?;
        Some((kind, Zeroizing::new(der)))
    })
}

/// Encodes a file of one block.
pub(crate) fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut pem = Zeroizing::new(String::with_capacity(body.len() + body.len() / 64 + 2 * label.len() + 40));
    pem.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}
