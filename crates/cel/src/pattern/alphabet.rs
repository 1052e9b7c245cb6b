//! The characters that a pattern tells apart.

use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
};
use std::collections::{BTreeMap, HashMap};

/// The maximum number of different classes and literal characters of a pattern with an alphabet.
const MAX_CLASSES: usize = 64;
const LINE_FEED: u8 = b'\n';

/// Maps characters to letters, which are bytes: characters that no part of a pattern tells apart have one letter. The
/// pattern over letters matches the encoded text where the pattern matches the text. A class such as `\pL` has hundreds
/// of ranges, which are hundreds of states for each position of the pattern; as a set of letters it is one state.
#[derive(Clone, Debug)]
pub(super) struct Alphabet {
    /// The first characters of the intervals whose characters have one letter, in order.
    starts: Vec<u32>,
    /// The letters of the intervals.
    letters: Vec<u8>,
}

impl Alphabet {
    /// The alphabet of a pattern, and the pattern over its letters. `None` for a pattern that has more than 64 different
    /// classes and literal characters, or looks for what letters do not tell.
    pub(super) fn of(pattern: &Hir) -> Option<(Alphabet, Hir)> {
        let mut classes = Classes::default();
        classes.collect(pattern)?;
        let alphabet = Alphabet::new(&classes)?;
        let sets: Vec<ClassBytes> = classes.classes.iter().map(|class| alphabet.letters_of(class)).collect();
        let pattern = classes.translate(pattern, &sets)?;
        Some((alphabet, pattern))
    }

    fn new(classes: &Classes) -> Option<Alphabet> {
        // The classes that begin at a character, and those that end before it.
        let mut changes: BTreeMap<u32, (u64, u64)> = BTreeMap::from([(0, (0, 0))]);
        for (index, class) in classes.classes.iter().enumerate() {
            let bit = 1_u64 << index;
            for range in class.ranges() {
                changes.entry(range.start().into()).or_default().0 |= bit;
                changes.entry(u32::from(range.end()) + 1).or_default().1 |= bit;
            }
        }
        let mut letters = Letters::default();
        let mut alphabet = Alphabet { starts: Vec::new(), letters: Vec::new() };
        let mut members = 0;
        for (start, (beginning, ending)) in changes {
            members = members & !ending | beginning;
            let letter = letters.of(members, classes)?;
            if alphabet.letters.last() != Some(&letter) {
                alphabet.starts.push(start);
                alphabet.letters.push(letter);
            }
        }
        Some(alphabet)
    }

    /// The letters of the characters of a class, which is one of those that made the alphabet.
    fn letters_of(&self, class: &ClassUnicode) -> ClassBytes {
        let mut letters = ClassBytes::empty();
        let mut seen = [false; 256];
        for range in class.ranges() {
            let from = self.interval(range.start());
            let to = self.interval(range.end());
            for &letter in self.letters.get(from..=to).unwrap_or_default() {
                if let Some(seen) = seen.get_mut(usize::from(letter))
                    && !std::mem::replace(seen, true)
                {
                    letters.push(ClassBytesRange::new(letter, letter));
                }
            }
        }
        letters
    }

    fn interval(&self, c: char) -> usize {
        self.starts.partition_point(|start| *start <= u32::from(c)).saturating_sub(1)
    }

    /// The number of intervals.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The letters of a text: one for each character.
    pub(super) fn encode(&self, text: &str) -> Vec<u8> {
        text.chars().map(|c| self.letters.get(self.interval(c)).copied().unwrap_or_default()).collect()
    }
}

/// The letters given so far, by the classes that their characters are members of.
#[derive(Default)]
struct Letters {
    given: HashMap<u64, u8>,
    words: usize,
    others: usize,
}

impl Letters {
    /// The letter of the members of some classes. Letters of word characters are word characters, and that of the line feed is
    /// itself, when the pattern looks for them.
    fn of(&mut self, members: u64, classes: &Classes) -> Option<u8> {
        if let Some(letter) = self.given.get(&members) {
            return Some(*letter);
        }
        let is_in = |class: Option<usize>| class.is_some_and(|index| members & 1 << index != 0);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let letter = if is_in(classes.line_feed) {
            LINE_FEED
        } else if is_in(classes.words) {
            self.words += 1;
            (0..=u8::MAX).filter(is_word).nth(self.words - 1)?
        } else {
            self.others += 1;
            (0..=u8::MAX).filter(|byte| !is_word(byte) && *byte != LINE_FEED).nth(self.others - 1)?
        };
        self.given.insert(members, letter);
        Some(letter)
    }
}

/// The different classes of a pattern; a literal character is a class of its own.
#[derive(Default)]
struct Classes {
    classes: Vec<ClassUnicode>,
    /// The class of the line feed, if the pattern looks for lines.
    line_feed: Option<usize>,
    /// The class of word characters, if the pattern looks for words.
    words: Option<usize>,
}

impl Classes {
    fn collect(&mut self, pattern: &Hir) -> Option<()> {
        match pattern.kind() {
            HirKind::Empty => {}
            HirKind::Look(Look::Start | Look::End) => {}
            HirKind::Look(Look::StartLF | Look::EndLF) => {
                self.line_feed = Some(self.add(&one('\n'))?);
            }
            HirKind::Look(Look::WordAscii | Look::WordAsciiNegate) => {
                let ranges = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
                let ranges = ranges.map(|(start, end)| ClassUnicodeRange::new(start, end));
                self.words = Some(self.add(&ClassUnicode::new(ranges))?);
            }
            // A class without members.
            HirKind::Class(Class::Bytes(class)) if class.ranges().is_empty() => {}
            HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => return None,
            HirKind::Literal(literal) => {
                for c in std::str::from_utf8(&literal.0).ok()?.chars() {
                    self.add(&one(c))?;
                }
            }
            HirKind::Class(Class::Unicode(class)) => drop(self.add(class)?),
            HirKind::Repetition(repetition) => self.collect(&repetition.sub)?,
            HirKind::Capture(capture) => self.collect(&capture.sub)?,
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                for part in parts {
                    self.collect(part)?;
                }
            }
        }
        Some(())
    }

    fn add(&mut self, class: &ClassUnicode) -> Option<usize> {
        if let Some(index) = self.index(class) {
            return Some(index);
        }
        if self.classes.len() == MAX_CLASSES {
            return None;
        }
        self.classes.push(class.clone());
        Some(self.classes.len() - 1)
    }

    fn index(&self, class: &ClassUnicode) -> Option<usize> {
        self.classes.iter().position(|known| known == class)
    }

    /// The pattern over letters; `sets` has the letters of the classes.
    fn translate(&self, pattern: &Hir, sets: &[ClassBytes]) -> Option<Hir> {
        let set = |class: &ClassUnicode| {
            let letters = sets.get(self.index(class)?)?;
            Some(Hir::class(Class::Bytes(letters.clone())))
        };
        let all =
            |parts: &[Hir]| parts.iter().map(|part| self.translate(part, sets)).collect::<Option<Vec<_>>>();
        Some(match pattern.kind() {
            HirKind::Empty => Hir::empty(),
            HirKind::Look(look) => Hir::look(*look),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                Hir::concat(text.chars().map(|c| set(&one(c))).collect::<Option<Vec<_>>>()?)
            }
            HirKind::Class(Class::Unicode(class)) => set(class)?,
            HirKind::Class(Class::Bytes(_)) => Hir::fail(),
            HirKind::Repetition(repetition) => {
                let mut repetition = repetition.clone();
                let part = self.translate(&repetition.sub, sets)?;
                // The pattern will be written. A `?` behind a repetition would make it lazy.
                repetition.sub = Box::new(match part.kind() {
                    HirKind::Repetition(_) => group(part),
                    _ => part,
                });
                Hir::repetition(repetition)
            }
            // No one asks for what a group matched.
            HirKind::Capture(capture) => self.translate(&capture.sub, sets)?,
            HirKind::Concat(parts) => Hir::concat(all(parts)?),
            HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
        })
    }
}

fn group(part: Hir) -> Hir {
    Hir::capture(Capture { index: 0, name: None, sub: Box::new(part) })
}

fn one(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}
