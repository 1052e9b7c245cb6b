//! The invariants of header blocks of HTTP/2.

use pintle_http2::{BlockKind, HeaderBlocks, Judgement};

/// Judges blocks of one connection, each of which follows its length. Returns how many were decoded.
///
/// A rewritten block is one that passes unchanged, or stands for a request that is refused, reset or not decoded.
pub(crate) fn header_blocks(mut data: &[u8]) -> usize {
    let mut blocks = HeaderBlocks::default();
    let mut decoded = 0;
    while let Some((length, rest)) = data.split_first() {
        let (block, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        let kind = match length % 4 {
            0 => BlockKind::Trailers,
            odd => BlockKind::Request { is_whole: odd == 1 },
        };
        let Judgement::Rewritten(block) = blocks.judge(block, kind) else {
            decoded += 1;
            continue;
        };
        if block == [0x80] {
            return decoded;
        }
        decoded += 1;
        let has = |text: &[u8]| block.windows(text.len()).any(|part| part == text);
        // The library needs no authority of CONNECT, as Go's server does.
        if has(b"refused-") || has(b"CONNECT") || block == b"\0\x0aconnection\x05close" {
            continue;
        }
        assert_eq!(HeaderBlocks::default().judge(&block, kind), Judgement::Plain, "{}", block.escape_ascii());
    }
    decoded
}
