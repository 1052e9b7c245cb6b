//! Field selectors (<https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>).

use super::SelectorError;
use std::fmt;

/// The operator of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own and say it")]
pub enum FieldOperator {
    Equals,
    NotEquals,
}

/// A requirement on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field's path, `spec.nodeName`.
    pub field: String,
    /// The operator.
    pub operator: FieldOperator,
    /// The value to compare with.
    pub value: String,
}

/// Terms that an object's fields must all meet. Without terms, every object is selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

impl FieldSelector {
    /// Selects every object.
    pub fn everything() -> FieldSelector {
        FieldSelector::default()
    }

    /// Selects objects by one field, such as the name.
    pub fn one_term(field: &str, value: &str) -> FieldSelector {
        let term =
            FieldTerm { field: field.to_owned(), operator: FieldOperator::Equals, value: value.to_owned() };
        FieldSelector { terms: vec![term] }
    }

    /// Parses the text form: `metadata.name=a,status.phase!=Running`. In values `\`, `,` and `=` are escaped by `\`.
    ///
    /// # Errors
    /// [`SelectorError`], when the text is malformed.
    pub fn parse(text: &str) -> Result<FieldSelector, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            let value = unescape(value)?;
            // A term without field and value selects every object.
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm { field: field.to_owned(), operator, value });
            }
        }
        Ok(FieldSelector { terms })
    }

    /// Validates and converts every term, for instance field names of an older version. A term that becomes a field and
    /// value of "" is dropped.
    ///
    /// # Errors
    /// The first error of the function.
    pub fn transform<E>(
        self,
        mut convert: impl FnMut(&str, &str) -> Result<(String, String), E>,
    ) -> Result<FieldSelector, E> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in self.terms {
            let (field, value) = convert(&term.field, &term.value)?;
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm { field, operator: term.operator, value });
            }
        }
        Ok(FieldSelector { terms })
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Whether an object with these fields is selected. The function returns a field's value; an absent field is "".
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| {
            let equal = field(&term.field).unwrap_or_default() == term.value;
            equal == (term.operator == FieldOperator::Equals)
        })
    }

    /// The value that a field must have, if the selector allows only one.
    pub fn requires_exact_match(&self, field: &str) -> Option<&str> {
        let term =
            self.terms.iter().find(|term| term.field == field && term.operator == FieldOperator::Equals)?;
        Some(&term.value)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let operator = match term.operator {
                FieldOperator::Equals => "=",
                FieldOperator::NotEquals => "!=",
            };
            write!(f, "{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Escapes a value for the text form.
fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            // The message contains the character's code point.
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let is_separator = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        is_separator
    })
    .collect()
}

fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    term.char_indices().find_map(|(index, _)| {
        let (field, rest) = term.split_at_checked(index)?;
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((field, FieldOperator::NotEquals, value));
        }
        let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
        Some((field, FieldOperator::Equals, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_printed_as_they_are_understood() {
        let rows = [
            ("", ""),
            (",", ""),
            ("metadata.name=a", "metadata.name=a"),
            ("b==1,a!=2,", "a!=2,b=1"),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("a=", "a="),
            ("=a", "=a"),
            ("=", ""),
            ("!=,a=b,==", "a=b"),
        ];
        for (text, printed) in rows {
            let selector = FieldSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(selector.to_string(), printed, "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_says_why() {
        let rows = [
            ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
            ("a=1,b in (c)", "invalid selector: 'a=1,b in (c)'; can't understand 'b in (c)'"),
            (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ];
        for (text, message) in rows {
            assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn fields_match() {
        let field = |name: &str| match name {
            "metadata.name" => Some("a"),
            _ => None,
        };
        let rows = [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name!=a", false),
            ("metadata.name=a,metadata.name=b", false),
            ("spec.nodeName=", true),
            ("spec.nodeName!=", false),
        ];
        for (text, matches) in rows {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(field), matches, "{text}");
        }
        assert_eq!(FieldSelector::parse("b=2,a!=1").unwrap().requires_exact_match("b"), Some("2"));
    }

    #[test]
    fn terms_are_converted() {
        let selector = FieldSelector::parse("name=a,drop=b").unwrap();
        let converted = selector.transform(|field, value| match field {
            "name" => Ok(("metadata.name".to_owned(), value.to_owned())),
            "drop" => Ok((String::new(), String::new())),
            other => Err(other.to_owned()),
        });
        assert_eq!(converted.unwrap().to_string(), "metadata.name=a");
    }
}
