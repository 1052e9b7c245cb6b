//! Strings, borrowed where the object or the program contains them.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A string.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Borrowed from the object or the program.
    Borrowed(&'a str),
    /// Computed by the evaluation.
    Shared(Arc<str>),
}

impl Text<'_> {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text::Borrowed(text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Shared(text.into())
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text<'_> {}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
