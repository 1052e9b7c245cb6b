//! Warnings to the client, beside the answer
//! (<https://kubernetes.io/blog/2020/09/03/warnings/>).

use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;

/// Warnings of one request, each text once, in the order they came.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

/// The most bytes of warnings that go into one answer; what is over is cut.
const MAX_TOTAL_BYTES: usize = 4 * 1024;

impl Warnings {
    /// Adds one.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut texts = self.0.lock();
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }

    /// Adds several.
    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    /// Writes them into an answer's headers, as `299 - "text"`.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        let mut left = MAX_TOTAL_BYTES;
        for text in self.0.lock().iter() {
            let quoted = format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            if quoted.len() > left {
                break;
            }
            left -= quoted.len();
            if let Ok(value) = HeaderValue::from_bytes(quoted.as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
    }
}
