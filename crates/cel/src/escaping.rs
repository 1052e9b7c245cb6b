//! Converts property names to identifiers and back: `x-y` is `x__dash__y`.
//!
//! The rules: <https://kubernetes.io/docs/reference/using-api/cel/#escaping>

use std::borrow::Cow;

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a text is an identifier and no reserved word
/// (<https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax>).
pub fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && characters.all(|character| character == '_' || character.is_ascii_alphanumeric())
        && !RESERVED.contains(&name)
}

/// The identifier of a property; `None` for names that cannot be identifiers.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)) {
        return None;
    }
    if !name.contains(['-', '.', '/']) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut out = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (escaped, len) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            _ => (rest.get(..1).unwrap_or_default(), 1),
        };
        out.push_str(escaped);
        rest = rest.get(len..).unwrap_or_default();
    }
    Some(Cow::Owned(out))
}

/// The property of an identifier; `None` when the identifier is not the escaped form of a property.
pub fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    if !identifier.contains("__") {
        return Some(Cow::Borrowed(identifier));
    }
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(start) = rest.find("__") {
        let after = rest.get(start + 2..).unwrap_or_default();
        // A word between two pairs of underscores, which contains no underscore.
        let word_end = after.find('_').unwrap_or(after.len());
        let (word, tail) = after.split_at_checked(word_end)?;
        match tail.strip_prefix("__") {
            Some(tail) if !word.is_empty() => {
                out.push_str(rest.get(..start).unwrap_or_default());
                match word {
                    "underscores" => out.push_str("__"),
                    "dot" => out.push('.'),
                    "dash" => out.push('-'),
                    "slash" => out.push('/'),
                    // Reserved words are escaped only as a whole.
                    word if RESERVED.contains(&word) && identifier.len() == word.len() + 4 => {
                        out.push_str(word)
                    }
                    _ => return None,
                }
                rest = tail;
            }
            _ => {
                out.push_str(rest.get(..start + 1).unwrap_or_default());
                rest = rest.get(start + 1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        let rows = [
            ("plain", Some("plain")),
            ("with_underscore", Some("with_underscore")),
            ("x-y", Some("x__dash__y")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("true", Some("__true__")),
            ("a___b", Some("a__underscores___b")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ];
        for (name, identifier) in rows {
            assert_eq!(escape(name).as_deref(), identifier, "{name}");
            if let Some(identifier) = identifier {
                assert_eq!(unescape(identifier).as_deref(), Some(name), "{identifier}");
            }
        }
    }

    #[test]
    fn identifiers_that_no_property_has() {
        for identifier in ["__unknown__", "a__namespace__", "x__true__y"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
        assert_eq!(unescape("a__b").as_deref(), Some("a__b"));
    }
}
