//! The matches of a pattern in a text.

use super::alphabet::Alphabet;
use regex::bytes;
use std::ops::Range;

/// The matches of a pattern in a text that do not overlap, from first to last; an empty match next to the one before is
/// none. Each is searched when it is asked for.
pub(crate) enum Matches<'p, 't> {
    /// The bytes of the text are matched.
    Plain(regex::Matches<'p, 't>),
    /// The letters of the text are matched.
    Letters(LetterMatches<'p>),
}

impl Iterator for Matches<'_, '_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        match self {
            Matches::Plain(matches) => matches.next().map(|found| found.range()),
            Matches::Letters(matches) => matches.next(),
        }
    }
}

/// The matches in the letters of a text.
pub(crate) struct LetterMatches<'p> {
    regex: &'p bytes::Regex,
    letters: Vec<u8>,
    /// The offsets of the characters in the text, and its length.
    offsets: Vec<usize>,
    /// The letter from which on to search.
    at: usize,
    /// The end of the last match.
    last: Option<usize>,
}

impl<'p> LetterMatches<'p> {
    pub(super) fn new(alphabet: &Alphabet, regex: &'p bytes::Regex, text: &str) -> LetterMatches<'p> {
        let offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]).collect();
        LetterMatches { regex, letters: alphabet.encode(text), offsets, at: 0, last: None }
    }

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            if self.at > self.letters.len() {
                return None;
            }
            let found = self.regex.find_at(&self.letters, self.at)?.range();
            if found.is_empty() && self.last == Some(found.end) {
                self.at = found.end + 1;
                continue;
            }
            (self.at, self.last) = (found.end, Some(found.end));
            return Some(*self.offsets.get(found.start)?..*self.offsets.get(found.end)?);
        }
    }
}
