//! Sizes of terminals, as clients send them.

use serde::Deserialize;

/// The most bytes of one size.
const MAX_BYTES: usize = 1024;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
struct TerminalSize {
    #[serde(rename = "Width", alias = "width")]
    width: u16,
    #[serde(rename = "Height", alias = "height")]
    height: u16,
}

/// Reads a sequence of sizes in JSON and writes them in the form that nodes read, a line each.
#[derive(Debug, Default)]
pub(crate) struct TerminalSizes {
    buffer: Vec<u8>,
    is_broken: bool,
}

impl TerminalSizes {
    /// The lines of the sizes that these bytes complete. After something else than a size there are no more.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        if self.is_broken {
            return lines;
        }
        self.buffer.extend_from_slice(bytes);
        let mut sizes = serde_json::Deserializer::from_slice(&self.buffer).into_iter::<TerminalSize>();
        for size in sizes.by_ref() {
            match size {
                Ok(TerminalSize { width, height }) => {
                    let line = format!("{{\"Width\":{width},\"Height\":{height}}}\n");
                    lines.extend_from_slice(line.as_bytes());
                }
                Err(error) if error.is_eof() => break,
                Err(_) => self.is_broken = true,
            }
        }
        let read = sizes.byte_offset();
        self.buffer.drain(..read.min(self.buffer.len()));
        if self.is_broken || self.buffer.len() > MAX_BYTES {
            self.is_broken = true;
            self.buffer = Vec::new();
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_pieces_until_one_is_malformed() {
        let check = |pieces: &[&str], expected: &str| {
            let mut sizes = TerminalSizes::default();
            let lines: Vec<u8> = pieces.iter().flat_map(|piece| sizes.read(piece.as_bytes())).collect();
            assert_eq!(String::from_utf8(lines).unwrap(), expected);
            assert!(sizes.buffer.len() <= MAX_BYTES);
        };
        let size = "{\"Width\":80,\"Height\":24}\n";
        check(&["{\"Width\":80,\"Hei", "ght\":24}"], size);
        check(&["{\"Width\":80,\"Height\":24}{\"Width\":80, \"Height\": 24}\n"], &size.repeat(2));
        check(&["{\"Height\":24,\"color\":1}"], "{\"Width\":0,\"Height\":24}\n");
        check(&["{\"Width\":80000}", "{\"Width\":80}"], "");
        check(&["[", "{\"Width\":80}"], "");
        check(&["{\"a\":\"", &"x".repeat(2 * MAX_BYTES), "\"}", "{\"Width\":80}"], "");
    }
}
