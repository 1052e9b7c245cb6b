//! Finds PEM blocks in a text as Go's `encoding/pem` does (<https://pkg.go.dev/encoding/pem#Decode>): text around the
//! blocks and malformed blocks are skipped.
//!
//! A validator of PEM must find the same blocks as the program that will use them. All PEM that other components of a
//! cluster will read, too, is therefore read by this module.

use crate::base64;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "\n-----END ";
const DASHES: &str = "-----";

/// One block.
#[derive(Debug, PartialEq, Eq)]
pub struct PemBlock<'a> {
    /// The type, such as `CERTIFICATE`.
    pub label: &'a str,
    /// Whether it has headers.
    pub has_headers: bool,
    /// The decoded bytes.
    pub contents: Vec<u8>,
}

/// The blocks of a text, in time linear in its length.
#[derive(Debug, Clone)]
pub struct PemBlocks<'a> {
    rest: &'a str,
}

impl<'a> PemBlocks<'a> {
    /// The blocks of a text.
    pub fn of(text: &'a str) -> PemBlocks<'a> {
        PemBlocks { rest: text }
    }

    /// Reads the block before the next end, and moves behind it. A block begins at the last beginning before its end.
    ///
    /// `None` at the end of the blocks; `Some(None)` if there is no well-formed block before the end.
    fn read(&mut self) -> Option<Option<PemBlock<'a>>> {
        let (before, trailer) = self.rest.split_once(END)?;
        let text = std::mem::replace(&mut self.rest, trailer);
        let Some((ahead, _)) = before.rsplit_once(BEGIN) else { return Some(None) };
        if !ahead.is_empty() && !ahead.ends_with('\n') {
            return Some(None);
        }
        let (line, mut body) = take_line(text.get(ahead.len() + BEGIN.len()..)?);
        let Some(label) = line.strip_suffix(DASHES) else { return Some(None) };
        let mut has_headers = false;
        loop {
            if body.is_empty() {
                return None;
            }
            let (line, next) = take_line(body);
            if !line.contains(':') {
                break;
            }
            has_headers = true;
            body = next;
        }
        // The length of the body and its line break; an empty one may lack its line break, unless it has headers.
        let length = match body.len().checked_sub(trailer.len()) {
            Some(length) => length.checked_sub(END.len()),
            // The headers go on behind the end.
            None => return None,
        };
        if has_headers && length.is_none() {
            return Some(None);
        }
        let Some(behind) = trailer.strip_prefix(label).and_then(|rest| rest.strip_prefix(DASHES)) else {
            return Some(None);
        };
        let (blank, behind) = take_line(behind);
        if !blank.is_empty() {
            return Some(None);
        }
        let body: String = body.get(..length.unwrap_or(0))?.replace([' ', '\t'], "");
        let Ok(contents) = base64::decode(&body) else { return Some(None) };
        self.rest = behind;
        Some(Some(PemBlock { label, has_headers, contents }))
    }
}

impl<'a> Iterator for PemBlocks<'a> {
    type Item = PemBlock<'a>;

    fn next(&mut self) -> Option<PemBlock<'a>> {
        loop {
            let Some(found) = self.read() else {
                self.rest = "";
                return None;
            };
            if found.is_some() {
                return found;
            }
        }
    }
}

/// The first line without trailing blanks, and the text behind it.
fn take_line(text: &str) -> (&str, &str) {
    let (line, rest) = match text.split_once('\n') {
        Some((line, rest)) => (line.strip_suffix('\r').unwrap_or(line), rest),
        None => (text, ""),
    };
    (line.trim_end_matches([' ', '\t']), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, bool, usize)> {
        PemBlocks::of(text).map(|block| (block.label, block.has_headers, block.contents.len())).collect()
    }

    fn block(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn blocks_are_found_between_other_text() {
        assert_eq!(found(""), []);
        assert_eq!(found("x"), []);
        let two = block("A", "AAAA") + "between\n" + &block("B", "A: b\n\nAAAA");
        assert_eq!(found(&two), [("A", false, 3), ("B", true, 3)]);
        assert_eq!(found(&block("A", "AA AA\r\nAAAA")), [("A", false, 6)]);
        assert_eq!(found("-----BEGIN A-----\r\nAAAA\r\n-----END A-----\r\n"), [("A", false, 3)]);
        assert_eq!(found("-----BEGIN A-----\n-----END A-----"), [("A", false, 0)]);
        assert_eq!(found("-----BEGIN A-----\n\n-----END A----- \t"), [("A", false, 0)]);
        // Unused trailing bits do not matter.
        assert_eq!(found(&block("A", "AB==")), [("A", false, 1)]);
    }

    #[test]
    fn malformed_blocks_are_skipped() {
        assert_eq!(found(&(block("A", "?") + &block("B", "AAAA"))), [("B", false, 3)]);
        let other_end = "-----BEGIN A-----\nAAAA\n-----END B-----\n".to_owned();
        assert_eq!(found(&(other_end + &block("C", "AAAA"))), [("C", false, 3)]);
        let open = "-----BEGIN A-----\nAAAA\n".to_owned();
        assert_eq!(found(&(open.clone() + &block("B", "AAAA"))), [("B", false, 3)]);
        let headers_only = "-----BEGIN A-----\nA: b\n-----END A-----\n".to_owned();
        assert_eq!(found(&(headers_only + &block("B", "AAAA"))), [("B", false, 3)]);
        for text in [
            open,
            "x -----BEGIN A-----\nAAAA\n-----END A-----".to_owned(),
            "-----BEGIN A-----\nAAAA\n-----END A-----x".to_owned(),
            "-----BEGIN A-----\nAAAA\n-----END A-----\r".to_owned(),
            "-----BEGIN A\nAAAA\n-----END A-----".to_owned(),
            // A line of headers hides the end, and what follows.
            "-----BEGIN A-----\nA: b\n-----END A: b-----\n".to_owned() + &block("B", "AAAA"),
        ] {
            assert_eq!(found(&text), [], "{text}");
        }
    }

    #[test]
    fn many_malformed_blocks_are_skipped_in_linear_time() {
        let last = block("B", "AAAA");
        for start in
            ["-----BEGIN A-----\n", "\n-----END A-----\n", "-----BEGIN A-----\nb: c\n-----END A-----\n"]
        {
            assert_eq!(found(&(start.repeat(50_000) + &last)), [("B", false, 3)], "{start}");
        }
    }
}
