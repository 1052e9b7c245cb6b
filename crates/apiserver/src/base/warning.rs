//! Collects warnings for the client and writes them into `Warning` headers
//! (<https://kubernetes.io/blog/2020/09/03/warnings/>).

use http::{HeaderMap, HeaderValue, header};
use indexmap::IndexSet;
use parking_lot::Mutex;

/// The warnings of one request, each text once, in order. Texts with control characters are dropped.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<IndexSet<String>>);

/// The total length of warnings in one response, in characters; above it each warning is truncated.
const MAX_TOTAL: usize = 4 * 1024;
/// The length of each truncated warning, in characters.
const MAX_EACH: usize = 256;

impl Warnings {
    /// Adds a warning.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut texts = self.0.lock();
        // One response has no room for more, whatever their length.
        if !text.is_empty() && texts.len() <= MAX_TOTAL && !text.chars().any(char::is_control) {
            texts.insert(text);
        }
    }

    /// Adds several warnings.
    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    /// Adds the warnings to a response's headers, as `299 - "text"`.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        let texts = self.0.lock();
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        if texts.iter().map(|text| text.chars().count()).sum::<usize>() > MAX_TOTAL {
            let mut written = 0;
            texts.retain_mut(|text| {
                if written >= MAX_TOTAL {
                    return false;
                }
                let cut = text.char_indices().nth(MAX_EACH).map_or(text.len(), |(at, _)| at);
                *text = text.get(..cut).unwrap_or_default();
                written += text.chars().count();
                true
            });
        }
        for text in texts {
            let quoted = format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            if let Ok(value) = HeaderValue::from_bytes(quoted.as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_beyond_the_limit_or_without_a_header_form_are_left_out() {
        let check = |texts: &[String], want: &[String]| {
            let warnings = Warnings::default();
            warnings.extend(texts.iter().cloned());
            let mut headers = HeaderMap::new();
            warnings.write_to(&mut headers);
            let got: Vec<_> = headers.get_all(header::WARNING).iter().map(|value| value.as_bytes()).collect();
            let want: Vec<_> = want.iter().map(|text| format!("299 - \"{text}\"")).collect();
            assert_eq!(got, want.iter().map(String::as_bytes).collect::<Vec<_>>());
        };
        check(
            &["a\"b\\".to_owned(), "two\nlines".to_owned(), "é".to_owned()],
            &["a\\\"b\\\\".to_owned(), "é".to_owned()],
        );
        let long = |letter: &str| letter.repeat(3000);
        check(&[long("a")], &[long("a")]);
        check(&[long("a"), long("b")], &["a".repeat(256), "b".repeat(256)]);
        let many: Vec<String> = (0..40).map(|index| format!("{index:0300}")).collect();
        let cut: Vec<String> = many.iter().take(16).map(|text| text[..256].to_owned()).collect();
        check(&many, &cut);
    }
}
