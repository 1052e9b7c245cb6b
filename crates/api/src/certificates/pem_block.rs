//! Finds PEM blocks in a text as Go's `encoding/pem` does: text around the blocks and malformed blocks are skipped.

use base64::{Engine, engine::general_purpose::STANDARD};

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// One block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PemBlock {
    /// The type, such as `CERTIFICATE`.
    pub(super) label: String,
    /// Whether it has headers.
    pub(super) has_headers: bool,
    /// The decoded bytes.
    pub(super) contents: Vec<u8>,
}

/// The number of times that a text may be read. Well-formed blocks are read twice; beginnings without an end are read up
/// to the end of the text each.
const MAX_READS: usize = 16;

/// The blocks of a text. The work is bounded by the length of the text: the blocks behind too many malformed ones are
/// not found.
pub(super) struct PemBlocks<'a> {
    rest: &'a str,
    is_first_line: bool,
    /// The number of bytes that may still be read.
    budget: usize,
}

impl<'a> PemBlocks<'a> {
    pub(super) fn of(text: &'a str) -> PemBlocks<'a> {
        PemBlocks { rest: text, is_first_line: true, budget: text.len().saturating_mul(MAX_READS) }
    }

    fn read_bytes(&mut self, count: usize) {
        self.budget = self.budget.saturating_sub(count);
    }

    /// Moves behind the next beginning of a block.
    fn find_begin(&mut self) -> Option<()> {
        let is_at_line = std::mem::replace(&mut self.is_first_line, false);
        self.rest = match self.rest.strip_prefix(BEGIN) {
            Some(rest) if is_at_line => rest,
            _ => {
                let at = self.rest.find("\n-----BEGIN ")?;
                self.rest.get(at + 1 + BEGIN.len()..)?
            }
        };
        Some(())
    }

    /// The block whose beginning was found, with the text behind it; `None` if it is malformed.
    fn read(&mut self) -> Option<(PemBlock, &'a str)> {
        let (line, rest) = take_line(self.rest);
        let label = line.strip_suffix(DASHES)?;
        self.rest = rest;
        let mut rest = rest;
        let mut has_headers = false;
        let start = rest.len();
        while !rest.is_empty() {
            let (line, next) = take_line(rest);
            if !line.contains(':') {
                break;
            }
            has_headers = true;
            rest = next;
        }
        let (body, behind) = match rest.strip_prefix(END) {
            Some(behind) if !has_headers => ("", behind),
            _ => {
                let found = rest.find("\n-----END ");
                self.read_bytes(start - rest.len() + found.unwrap_or(rest.len()));
                let at = found?;
                (rest.get(..at)?, rest.get(at + 1 + END.len()..)?)
            }
        };
        let (end, behind) = take_line(behind);
        if end.strip_suffix(DASHES) != Some(label) {
            return None;
        }
        let body: Vec<u8> = body.bytes().filter(|byte| !b" \t\r\n".contains(byte)).collect();
        let contents = STANDARD.decode(body).ok()?;
        Some((PemBlock { label: label.to_owned(), has_headers, contents }, behind))
    }
}

impl Iterator for PemBlocks<'_> {
    type Item = PemBlock;

    fn next(&mut self) -> Option<PemBlock> {
        while self.budget > 0 {
            self.find_begin()?;
            if let Some((block, behind)) = self.read() {
                self.rest = behind;
                self.is_first_line = true;
                return Some(block);
            }
        }
        None
    }
}

/// The first line without trailing blanks, and the text behind it.
fn take_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.trim_end_matches([' ', '\t', '\r']), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<(String, bool, usize)> {
        PemBlocks::of(text).map(|block| (block.label, block.has_headers, block.contents.len())).collect()
    }

    #[test]
    fn blocks_are_found_between_other_text() {
        let block =
            |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        let found = |label: &str, has_headers: bool, length: usize| (label.to_owned(), has_headers, length);
        assert_eq!(labels(""), []);
        assert_eq!(labels("x"), []);
        let two = block("A", "AAAA") + "between\n" + &block("B", "A: b\n\nAAAA");
        assert_eq!(labels(&two), [found("A", false, 3), found("B", true, 3)]);
        assert_eq!(labels(&block("A", "AA AA\r\nAAAA")), [found("A", false, 6)]);
        assert_eq!(labels("-----BEGIN A-----\n-----END A-----"), [found("A", false, 0)]);
        assert_eq!(labels(&(block("A", "?") + &block("B", "AAAA"))), [found("B", false, 3)]);
        let wrong_end = "-----BEGIN A-----\nAAAA\n-----END B-----\n".to_owned();
        assert_eq!(labels(&(wrong_end + &block("C", "AAAA"))), [found("C", false, 3)]);
        let begins = "-----BEGIN A-----\n".repeat(50_000);
        assert_eq!(labels(&begins), []);
        assert_eq!(labels("x -----BEGIN A-----\nAAAA\n-----END A-----"), []);
    }
}
