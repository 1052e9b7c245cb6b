//! Unicode classes such as `\p{Greek}`.

use regex_syntax::hir::{Class, HirKind};

/// A Unicode class that Go knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnicodeClass {
    name: String,
    /// The number of ranges.
    pub(super) ranges: usize,
}

impl UnicodeClass {
    /// The class of this name, compared without case, spaces, hyphens and underscores; `None` if Go knows none. Go looks
    /// scripts up in a form in which names of several words are missing.
    pub(super) fn named(name: &str) -> Option<UnicodeClass> {
        let is_separator = |c: &char| matches!(c, ' ' | '-' | '_');
        let name: String =
            name.chars().filter(|c| !is_separator(c)).map(|c| c.to_ascii_lowercase()).collect();
        NAMES.binary_search(&name.as_str()).ok()?;
        if is_of_surrogates(&name) {
            return Some(UnicodeClass { name, ranges: 1 });
        }
        let parsed = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
        let ranges = match parsed.kind() {
            HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
            _ => 1,
        };
        Some(UnicodeClass { name, ranges })
    }

    /// The class, or all other characters, in the syntax of the `regex` crate, also for the inside of brackets.
    pub(super) fn translated(&self, negated: bool) -> String {
        match (is_of_surrogates(&self.name), negated) {
            // No text has surrogates.
            (true, false) => "[^\\x{0}-\\x{10FFFF}]".to_owned(),
            (true, true) => "\\p{any}".to_owned(),
            (false, false) => format!("\\p{{{}}}", self.name),
            (false, true) => format!("\\P{{{}}}", self.name),
        }
    }
}

fn is_of_surrogates(name: &str) -> bool {
    matches!(name, "cs" | "surrogate")
}

/// The names, in lower case and without separators: general categories with their aliases, and scripts of one word
/// (<https://pkg.go.dev/unicode>, <https://pkg.go.dev/regexp/syntax>).
const NAMES: [&str; 200] = [
    "adlam",
    "ahom",
    "any",
    "arabic",
    "armenian",
    "ascii",
    "assigned",
    "avestan",
    "balinese",
    "bamum",
    "batak",
    "bengali",
    "bhaiksuki",
    "bopomofo",
    "brahmi",
    "braille",
    "buginese",
    "buhid",
    "c",
    "carian",
    "casedletter",
    "cc",
    "cf",
    "chakma",
    "cham",
    "cherokee",
    "chorasmian",
    "closepunctuation",
    "cn",
    "cntrl",
    "co",
    "combiningmark",
    "common",
    "connectorpunctuation",
    "control",
    "coptic",
    "cs",
    "cuneiform",
    "currencysymbol",
    "cypriot",
    "cyrillic",
    "dashpunctuation",
    "decimalnumber",
    "deseret",
    "devanagari",
    "digit",
    "dogra",
    "duployan",
    "elbasan",
    "elymaic",
    "enclosingmark",
    "ethiopic",
    "finalpunctuation",
    "format",
    "georgian",
    "glagolitic",
    "gothic",
    "grantha",
    "greek",
    "gujarati",
    "gurmukhi",
    "han",
    "hangul",
    "hanunoo",
    "hatran",
    "hebrew",
    "hiragana",
    "inherited",
    "initialpunctuation",
    "javanese",
    "kaithi",
    "kannada",
    "katakana",
    "kawi",
    "kharoshthi",
    "khmer",
    "khojki",
    "khudawadi",
    "l",
    "lao",
    "latin",
    "lc",
    "lepcha",
    "letter",
    "letternumber",
    "limbu",
    "lineseparator",
    "lisu",
    "ll",
    "lm",
    "lo",
    "lowercaseletter",
    "lt",
    "lu",
    "lycian",
    "lydian",
    "m",
    "mahajani",
    "makasar",
    "malayalam",
    "mandaic",
    "manichaean",
    "marchen",
    "mark",
    "mathsymbol",
    "mc",
    "me",
    "medefaidrin",
    "miao",
    "mn",
    "modi",
    "modifierletter",
    "modifiersymbol",
    "mongolian",
    "mro",
    "multani",
    "myanmar",
    "n",
    "nabataean",
    "nandinagari",
    "nd",
    "newa",
    "nko",
    "nl",
    "no",
    "nonspacingmark",
    "number",
    "nushu",
    "ogham",
    "openpunctuation",
    "oriya",
    "osage",
    "osmanya",
    "other",
    "otherletter",
    "othernumber",
    "otherpunctuation",
    "othersymbol",
    "p",
    "palmyrene",
    "paragraphseparator",
    "pc",
    "pd",
    "pe",
    "pf",
    "phoenician",
    "pi",
    "po",
    "privateuse",
    "ps",
    "punct",
    "punctuation",
    "rejang",
    "runic",
    "s",
    "samaritan",
    "saurashtra",
    "sc",
    "separator",
    "sharada",
    "shavian",
    "siddham",
    "sinhala",
    "sk",
    "sm",
    "so",
    "sogdian",
    "soyombo",
    "spaceseparator",
    "spacingmark",
    "sundanese",
    "surrogate",
    "symbol",
    "syriac",
    "tagalog",
    "tagbanwa",
    "takri",
    "tamil",
    "tangsa",
    "tangut",
    "telugu",
    "thaana",
    "thai",
    "tibetan",
    "tifinagh",
    "tirhuta",
    "titlecaseletter",
    "toto",
    "ugaritic",
    "unassigned",
    "uppercaseletter",
    "vai",
    "vithkuqi",
    "wancho",
    "yezidi",
    "yi",
    "z",
    "zl",
    "zp",
    "zs",
];

#[cfg(test)]
mod tests {
    use super::{NAMES, UnicodeClass};

    #[test]
    fn classes_have_the_names_of_go() {
        assert!(NAMES.is_sorted());
        for name in NAMES {
            assert!(UnicodeClass::named(name).is_some(), "{name}");
        }
        for name in ["Greek", "gr-EEK", " l_", "Uppercase_Letter", "LC", "ASCII"] {
            assert!(UnicodeClass::named(name).is_some(), "{name}");
        }
        for name in
            ["", "Grek", "Alphabetic", "Emoji", "IsGreek", "Old_Italic", "White_Space", "gc=Lu", "Greek:"]
        {
            assert_eq!(UnicodeClass::named(name), None, "{name}");
        }
    }
}
