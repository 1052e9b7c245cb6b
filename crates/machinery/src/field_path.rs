//! Paths of fields in validation errors.

use smallvec::SmallVec;
use std::fmt;

/// The length of a path, in bytes, up to which it takes no memory of its own. Paths are built for every validated
/// field, but few are ever shown: in a pod, most fit.
const IN_PLACE: usize = 64;

/// The maximum length of a path with keys, in bytes.
const MAX_LENGTH: usize = 2048;
/// The part of a key that is always shown, in bytes.
const MIN_SHOWN_KEY: usize = 16;

/// The path of a field in validation messages: `spec.containers[0].env[KEY].name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(SmallVec<[u8; IN_PLACE]>);

impl FieldPath {
    /// A path that starts at a top-level field; "" is the object itself.
    pub fn new(name: &str) -> FieldPath {
        FieldPath(SmallVec::from_slice(name.as_bytes()))
    }

    /// A member of this field.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        match self.0.is_empty() {
            true => FieldPath::new(name),
            false => self.with([".", name, ""]),
        }
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        match index {
            0 => self.with(["[0]", "", ""]),
            _ => self.with(["[", &index.to_string(), "]"]),
        }
    }

    /// The value of this map under a key. In a long path the key is truncated.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        match shown(self.0.len(), key) {
            None => self.with(["[", key, "]"]),
            Some(shown) => self.with(["[", shown, "...]"]),
        }
    }

    fn with(&self, parts: [&str; 3]) -> FieldPath {
        let length = self.0.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut path = SmallVec::with_capacity(length);
        path.extend_from_slice(&self.0);
        parts.iter().for_each(|part| path.extend_from_slice(part.as_bytes()));
        FieldPath(path)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // All parts are text.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Appends a name to a path. A client chooses the keys of maps, and each field below has them in its path, so in a long
/// path the name is truncated.
pub fn push_name(path: &mut String, name: &str) {
    match shown(path.len(), name) {
        None => path.push_str(name),
        Some(shown) => {
            path.push_str(shown);
            path.push_str("...");
        }
    }
}

/// The part of a key that is shown after a path of this length; `None` shows all of it.
fn shown(length: usize, key: &str) -> Option<&str> {
    let shown = MAX_LENGTH.saturating_sub(length).max(MIN_SHOWN_KEY);
    if key.len() <= shown {
        return None;
    }
    let end = (0..=shown).rev().find(|end| key.is_char_boundary(*end)).unwrap_or_default();
    Some(key.get(..end).unwrap_or_default())
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { self.as_str() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_lose_their_end() {
        let key = "é".repeat(MAX_LENGTH);
        let path = FieldPath::new("a").key(&key);
        assert!(path.as_str().starts_with("a[éé") && path.as_str().ends_with("é...]"), "{path}");
        assert!((MAX_LENGTH..MAX_LENGTH + 8).contains(&path.as_str().len()), "{}", path.as_str().len());
        let deeper = path.key(&key).child("b");
        assert!(deeper.as_str().ends_with("é...].b") && deeper.as_str().len() < MAX_LENGTH + 40, "{deeper}");
        let short = "k".repeat(MAX_LENGTH - 1);
        assert_eq!(FieldPath::new("a").key(&short).as_str(), format!("a[{short}]"));
    }
}
