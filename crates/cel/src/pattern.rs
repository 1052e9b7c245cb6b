//! Regular expressions in Go's syntax (RE2, <https://github.com/google/re2/wiki/Syntax>), with Go's messages.
//!
//! The `regex` crate has the same semantics and bounds but slightly different syntax: `\d`, `\w`, `\s` and `\b` are
//! ASCII in Go, classes have no set operations, `{` without a repetition is a literal, and some errors exist in only
//! one of the two. A pattern is therefore parsed by Go's rules and [translated](translator).

mod alphabet;
mod gauge;
mod limits;
mod matches;
mod translator;
mod unicode_class;

use alphabet::Alphabet;
use gauge::Gauge;
use limits::{CACHE_LIMIT, LETTERS_NEST_LIMIT, NEST_LIMIT, SIZE_LIMIT};
use matches::{LetterMatches, Matches};
use regex::{Regex, RegexBuilder, bytes};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};
use std::sync::Arc;
use translator::{Problem, Translator};

/// The weight from which on a pattern with classes beyond ASCII is matched over letters.
const HEAVY: u64 = 1_000;
/// The number of written ranges of classes that weigh as much as one position, when a pattern is matched over letters.
const RANGES_AT_ONCE: u64 = 4;
/// The number of positions whose matching costs as much as finding the letter of a character.
const ENCODING: u64 = 32;
/// The number of characters, times the pattern's weight, whose matching costs as much as one visited item when it takes a
/// constant time for each character.
const MATCHED_AT_ONCE: u64 = 256;
/// The same, when each character is compared with all positions of the pattern.
const COMPARED_AT_ONCE: u64 = 4;
/// The weight up to which a pattern is not gauged: to compare a character with all of its positions is cheap enough.
const LIGHT: u64 = 128;

/// The maximum total weight of all patterns of an expression.
pub(crate) const MAX_WEIGHT: u64 = 250_000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    matcher: Matcher,
    weight: Weight,
    /// Of heavy patterns.
    gauge: Option<Arc<Gauge>>,
}

#[derive(Clone, Copy, Debug)]
struct Weight {
    /// The number of positions that a character is compared with, at most.
    matching: u64,
    /// The weight of compiling.
    compiling: u64,
}

impl Weight {
    fn same(weight: u64) -> Weight {
        Weight { matching: weight, compiling: weight }
    }
}

#[derive(Clone, Debug)]
enum Matcher {
    /// Matches the bytes of texts.
    Plain(Regex),
    /// Matches the letters of texts.
    Letters(Alphabet, bytes::Regex),
}

impl Pattern {
    /// Whether the text contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Plain(regex) => regex.is_match(text),
            Matcher::Letters(alphabet, regex) => regex.is_match(&alphabet.encode(text)),
        }
    }

    /// The matches in a text.
    pub(crate) fn matches<'p, 't>(&'p self, text: &'t str) -> Matches<'p, 't> {
        match &self.matcher {
            Matcher::Plain(regex) => Matches::Plain(regex.find_iter(text)),
            Matcher::Letters(alphabet, regex) => Matches::Letters(LetterMatches::new(alphabet, regex, text)),
        }
    }

    /// The memory of the pattern and the time of its compilation, in the approximate number of positions after
    /// expansion of repetitions.
    pub fn weight(&self) -> u64 {
        self.weight.compiling
    }

    /// The maximum work of searching a text once, in visited items. To tell it costs a time that is linear in the text.
    pub fn effort(&self, text: &str) -> u64 {
        let comparisons = self.weight.matching.saturating_mul(text.len() as u64);
        let Some(gauge) = &self.gauge else { return comparisons / MATCHED_AT_ONCE };
        let is_cheap = match &self.matcher {
            Matcher::Plain(regex) => gauge.is_cheap(regex.as_str(), true, text.as_bytes()),
            Matcher::Letters(alphabet, regex) => {
                gauge.is_cheap(regex.as_str(), false, &alphabet.encode(text))
            }
        };
        comparisons / if is_cheap { MATCHED_AT_ONCE } else { COMPARED_AT_ONCE }
    }
}

/// Compiles a pattern.
///
/// # Errors
/// Go's message, when the pattern is malformed or too large.
pub fn compile(pattern: &str) -> Result<Pattern, String> {
    let Parsed { form, weight } = Parsed::new(pattern).map_err(failed)?;
    let too_large = |_| failed(Problem("expression too large", pattern));
    let matcher = match form {
        Form::Plain(translated) => {
            let mut builder = RegexBuilder::new(&translated);
            let builder = builder.size_limit(SIZE_LIMIT).dfa_size_limit(CACHE_LIMIT).nest_limit(NEST_LIMIT);
            Matcher::Plain(builder.build().map_err(too_large)?)
        }
        Form::Letters(alphabet, letters) => {
            let mut builder = bytes::RegexBuilder::new(&letters.to_string());
            let builder = builder.unicode(false).size_limit(SIZE_LIMIT).dfa_size_limit(CACHE_LIMIT);
            let regex = builder.nest_limit(LETTERS_NEST_LIMIT).build().map_err(too_large)?;
            Matcher::Letters(alphabet, regex)
        }
    };
    let gauge = (weight.matching > LIGHT).then(|| Arc::new(Gauge::new()));
    Ok(Pattern { matcher, weight, gauge })
}

/// The weight that a pattern would have ([`Pattern::weight`]); 1 for a malformed pattern.
pub fn weight(pattern: &str) -> u64 {
    Parsed::new(pattern).map_or(1, |parsed| parsed.weight.compiling)
}

fn failed(Problem(message, at): Problem<'_>) -> String {
    format!("error parsing regexp: {message}: `{at}`")
}

/// A pattern that is parsed, but not compiled.
struct Parsed {
    form: Form,
    weight: Weight,
}

enum Form {
    /// The translated pattern.
    Plain(String),
    /// The pattern over the letters of its alphabet.
    Letters(Alphabet, Hir),
}

impl Parsed {
    fn new(pattern: &str) -> Result<Parsed, Problem<'_>> {
        let (translated, ranges) = Translator::new(pattern).translate()?;
        let Ok(parsed) = ParserBuilder::new().nest_limit(NEST_LIMIT).build().parse(&translated) else {
            return Ok(Parsed { form: Form::Plain(translated), weight: Weight::same(1) });
        };
        let weight = 1 + places(&parsed);
        if weight >= HEAVY
            && has_wide_class(&parsed)
            && let Some((alphabet, letters)) = Alphabet::of(&parsed)
        {
            let positions = 1 + places(&letters);
            let compiling = positions + alphabet.len() as u64 + ranges as u64 / RANGES_AT_ONCE;
            if compiling < weight {
                let weight = Weight { matching: positions + ENCODING, compiling };
                return Ok(Parsed { form: Form::Letters(alphabet, letters), weight });
            }
        }
        Ok(Parsed { form: Form::Plain(translated), weight: Weight::same(weight) })
    }
}

/// Whether a pattern has a class with characters beyond ASCII.
fn has_wide_class(pattern: &Hir) -> bool {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => false,
        HirKind::Class(class) => !is_narrow(class),
        HirKind::Repetition(repetition) => has_wide_class(&repetition.sub),
        HirKind::Capture(capture) => has_wide_class(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_wide_class),
    }
}

fn is_narrow(class: &Class) -> bool {
    match class {
        Class::Bytes(_) => true,
        Class::Unicode(class) => class.is_ascii(),
    }
}

/// The number of positions in a pattern.
fn places(pattern: &Hir) -> u64 {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Class(class) if is_narrow(class) => 1,
        // Characters beyond ASCII are matched byte by byte.
        HirKind::Class(Class::Unicode(class)) => 8 + 2 * class.ranges().len() as u64,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1).max(1);
            places(&repetition.sub).saturating_add(1).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => places(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum: u64, part| sum.saturating_add(places(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_in_go() {
        let rows = [
            ("l+", "hello", true),
            ("^l+", "hello", false),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^\s$", "\u{b}", false),
            (r"\bé", "é", false),
            (r"^[\d\-x]+$", "1-x", true),
            (r"^[^\D]+$", "12", true),
            ("^a{,2}$", "a{,2}", true),
            ("^a{2}$", "aa", true),
            ("^x{$", "x{", true),
            ("^[a&&b]+$", "&", true),
            ("^[[a]+$", "[a", true),
            ("^[]a]+$", "]", true),
            ("^[a-]+$", "-", true),
            ("^[[:alpha:]]+$", "ab", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\pL+$", "é", true),
            (r"^\p{Greek}$", "α", true),
            (r"^\x41\x{42}\103$", "ABC", true),
            ("(?i)^ABC$", "abc", true),
            ("^(?P<n>a)(?<m>b)$", "ab", true),
            ("(?s)^.$", "\n", true),
            ("^.$", "\n", false),
            ("a$", "a\n", false),
            ("(?m)a$", "a\n", true),
            ("#  x", "#  x", true),
            ("^a~b$", "a~b", true),
            ("^*a", "a", true),
            (r"\b*a", "a", true),
            ("(|a)*b", "b", true),
            ("(a{2}){500}", "a", false),
            (r"^\p{^Greek}\p{Letter}$", "ab", true),
            (r"^\08$", "\u{0}8", true),
            ("(?P<n>a)(?P<n>b)", "ab", true),
            ("^[a-b-c]+$", "b-c", true),
            (r"^[\d-z]+$", "1-z", true),
            ("^a{01}$", "a{01}", true),
            ("(?i)s", "ſ", true),
            (r"^\p{Cs}?a\P{Cs}$", "aé", true),
            (r"\p{surrogate}", "é\u{FFFD}", false),
            (r"^\p{gr-EEK}\p{Lowercase Letter}$", "αb", true),
            ("(((a{9}){0}b){500}){2}", "b", false),
            ("^((a{501}){0}b|a){2}$", "ab", true),
            (r"^(((?m:[\p{Cn}]K?)*){2,25}[^}\d\p{Any}]){0,11}$", "", true),
        ];
        for (pattern, text, matches) in rows {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn mistakes_are_told_as_in_go() {
        let rows = [
            ("[", "missing closing ]: `[`"),
            ("a[b", "missing closing ]: `[b`"),
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*?+", "invalid nested repetition operator: `*?+`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
            (r"\p{Old_Italic}", r"invalid character class range: `\p{Old_Italic}`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            ("(?P<>a)", "invalid named capture: `(?P<>`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
            ("(?i--s)a", "invalid or unsupported Perl syntax: `(?i--`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            (r"\xZZ", r"invalid escape sequence: `\xZZ`"),
            (r"\x{}", r"invalid escape sequence: `\x{}`"),
            (r"\x{zz}", r"invalid escape sequence: `\x{z`"),
            (r"\x4", r"invalid escape sequence: `\x4`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"[a-\d]", r"invalid escape sequence: `\d`"),
            ("(a{2}){501}", "invalid repeat count: `{501}`"),
            ("((a{10}){10}){11}", "invalid repeat count: `{11}`"),
            ("(a{501}b{0}){2}", "invalid repeat count: `{2}`"),
            ("(a{501}|b){2}", "invalid repeat count: `{2}`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("(?i)*", "missing argument to repetition operator: `*`"),
        ];
        for (pattern, error) in rows {
            assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {error}"), "{pattern}");
        }
    }

    #[test]
    fn weight_follows_what_repetitions_write_out() {
        let rows =
            [("abc", 4), ("[a-z]{100}", 201), ("(a{10}){10}", 231), ("a|b", 2), ("(", 1), (r"[\d]*", 3)];
        for (pattern, expected) in rows {
            assert_eq!(weight(pattern), expected, "{pattern}");
        }
        assert!(weight(r"[\pL\pS]{100}") < 2_500 && weight(".{1000}") < 2_100);
        for pattern in [r"\pL{2}", r"\pL{100}"] {
            assert_eq!(compile(pattern).unwrap().weight(), weight(pattern), "{pattern}");
        }
    }

    /// Matches a text over letters and over bytes.
    fn check_letters(pattern: &str, text: &str) {
        let (translated, _) = Translator::new(pattern).translate().unwrap_or_else(|_| panic!("{pattern}"));
        let parsed = regex_syntax::parse(&translated).unwrap();
        let (alphabet, letters) =
            Alphabet::of(&parsed).unwrap_or_else(|| panic!("{pattern} has no alphabet"));
        let mut builder = bytes::RegexBuilder::new(&letters.to_string());
        let matcher = Matcher::Letters(alphabet, builder.unicode(false).build().unwrap());
        let letters = Pattern { matcher, weight: Weight::same(1), gauge: None };
        let plain = Regex::new(&translated).unwrap();
        let found: Vec<_> = letters.matches(text).collect();
        let expected: Vec<_> = plain.find_iter(text).map(|found| found.range()).collect();
        assert_eq!(found, expected, "{pattern} in {text:?}");
        assert_eq!(letters.is_match(text), plain.is_match(text), "{pattern} in {text:?}");
    }

    #[test]
    fn letters_match_as_bytes_do() {
        let patterns = [
            "l+",
            "^l+",
            r"^\pL+$",
            r"\pL|\d",
            r"\bé",
            r"\b",
            r"\B",
            r"\b\w+\b",
            "",
            "a*",
            "(?m)^",
            "(?m)$",
            "(?m)^b$",
            "(?i)straße|s",
            r"[^\pL\n]+",
            "(?s).",
            ".",
            r"(?U)\pL+",
            r"^(é|\PL){2,3}",
            r"\p{Greek}+?",
            "😀",
            r"\x{0}",
            r"[\x{D7FF}-\x{E000}]",
            r"\x{10FFFF}|\s$",
            r"^(?:\pL{2,3})?\pL",
            r"((?:(\w*)?)*)+?-",
            r"[^\x{0}-\x{10FFFF}]?a",
        ];
        let texts = [
            "",
            "hello",
            "é ab_1 αβγ",
            "a\nb\n\nSTRASSE ſ\n",
            "😀😀x\u{0}\u{10FFFF}",
            "\u{D7FF}\u{E000}\n",
            "-é-1-",
        ];
        for (pattern, text) in patterns.iter().flat_map(|pattern| texts.map(|text| (pattern, text))) {
            check_letters(pattern, text);
        }
    }

    /// Patterns of classes, characters and assertions, nested and repeated.
    fn patterns() -> impl Strategy<Value = String> {
        let parts = [
            "a",
            "é",
            "-",
            "_",
            ".",
            r"\n",
            r"\pL",
            r"\PL",
            r"[^\pLa]",
            r"[\d\pS]",
            r"\b",
            r"\B",
            "^",
            "$",
            "(?m:^)",
            "(?m:$)",
            "(?i:É)",
            "(?s:.)",
            r"[^\p{Any}]",
        ];
        let part = proptest::sample::select(parts.to_vec()).prop_map(str::to_owned);
        part.prop_recursive(4, 24, 4, |inner| {
            let group =
                |open: &'static str, close: &'static str| move |inner| format!("{open}{inner}{close}");
            let operators = ["*", "+", "?", "*?", "??", "{2}", "{0}", "{1,3}", "{0,2}?", "{2,}"];
            prop_oneof![
                inner.clone().prop_map(group("(", ")")),
                inner.clone().prop_map(group("(?U:", ")")),
                proptest::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
                proptest::collection::vec(inner.clone(), 2..3).prop_map(|parts| parts.join("|")),
                (inner, proptest::sample::select(operators.to_vec()))
                    .prop_map(|(inner, operator)| format!("(?:{inner}){operator}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn letters_match_as_bytes_do_in_any_pattern(pattern in patterns(), text in "[aAbéÉß_1 \n+-]{0,8}") {
            check_letters(&pattern, &text);
        }
    }

    #[test]
    fn domain_names_of_any_script_are_a_small_pattern() {
        let label = r"[a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)";
        let pattern = compile(&format!(r"^({label}(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}}$")).unwrap();
        assert!(pattern.weight() < 4_000, "{}", pattern.weight());
        let name = format!("{}.example.com", "bücher".repeat(8));
        for _ in 0..1000 {
            assert!(pattern.effort(&name) < 500, "{}", pattern.effort(&name));
        }
        assert!(pattern.is_match("bücher.例え.テスト"));
        assert!(!pattern.is_match("bücher.例え.テスト1") && !pattern.is_match(".de"));
    }

    #[test]
    fn patterns_with_many_classes_are_bounded() {
        assert!(compile(&r"\pL".repeat(100)).is_ok());
        let many: String = (0..200).map(|at| char::from_u32(0x4e00 + at).unwrap()).collect();
        assert!(compile(&format!("(?i)[{many}]{{100}}{many}")).is_ok());
        for pattern in [r"\pL".repeat(50_000), format!("[{}]", r"\pL".repeat(50_000))] {
            let error = compile(&pattern).unwrap_err();
            assert!(error.starts_with("error parsing regexp: expression too large"), "{:.80}", error);
        }
    }

    #[test]
    fn patterns_are_bounded() {
        assert!(compile(&"(".repeat(100_000)).is_err());
        assert!(compile("((((a{100}){100}){100}){100})").is_err());
    }
}
