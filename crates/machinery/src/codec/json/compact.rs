//! Compacts JSON as Go does.

/// Compacts valid JSON to one line with Go's escapes.
pub fn compact(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let mut in_string = false;
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => {}
            b'"' => {
                in_string = !in_string;
                out.push(byte);
            }
            b'\\' => {
                out.push(byte);
                if let Some((&escaped, after)) = rest.split_first() {
                    out.push(escaped);
                    rest = after;
                }
            }
            b'<' => out.extend_from_slice(b"\\u003c"),
            b'>' => out.extend_from_slice(b"\\u003e"),
            b'&' => out.extend_from_slice(b"\\u0026"),
            0xe2 => match rest {
                [0x80, 0xa8, after @ ..] => {
                    out.extend_from_slice(b"\\u2028");
                    rest = after;
                }
                [0x80, 0xa9, after @ ..] => {
                    out.extend_from_slice(b"\\u2029");
                    rest = after;
                }
                _ => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
    out
}
