//! Paths of fields in validation errors.

use std::fmt;

/// The length of a path, in bytes, up to which it takes no memory of its own. Paths are built for every validated
/// field, but few are ever shown.
const IN_PLACE: usize = 63;
/// The maximum length of a path with keys, in bytes.
const MAX_LENGTH: usize = 2048;
/// The part of a key that is always shown, in bytes.
const MIN_SHOWN_KEY: usize = 16;

/// The path of a field in validation messages: `spec.containers[0].env[KEY].name`.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldPath(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    /// A path of at most [`IN_PLACE`] bytes, with zeros after it.
    Short {
        length: u8,
        bytes: [u8; IN_PLACE],
    },
    Long(String),
}

impl FieldPath {
    /// A path that starts at a top-level field; "" is the object itself.
    pub fn new(name: &str) -> FieldPath {
        FieldPath::default().with(None, name, "")
    }

    /// A member of this field.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        match self.length() {
            0 => FieldPath::new(name),
            _ => self.with(Some('.'), name, ""),
        }
    }

    /// An item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        match index {
            0 => self.with(Some('['), "0]", ""),
            _ => self.with(Some('['), &index.to_string(), "]"),
        }
    }

    /// The value of this map under a key. In a long path the key is truncated.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        match shown(self.length(), key) {
            None => self.with(Some('['), key, "]"),
            Some(shown) => self.with(Some('['), shown, "...]"),
        }
    }

    fn with(&self, before: Option<char>, part: &str, after: &str) -> FieldPath {
        if let Form::Short { length, bytes } = &self.0
            && let Some(short) = appended((*length).into(), bytes, before, part, after)
        {
            return FieldPath(short);
        }
        let mut path = String::with_capacity(self.length() + 1 + part.len() + after.len());
        path.push_str(self.as_str());
        path.extend(before);
        path.push_str(part);
        path.push_str(after);
        FieldPath(Form::Long(path))
    }

    fn length(&self) -> usize {
        match &self.0 {
            Form::Short { length, .. } => (*length).into(),
            Form::Long(path) => path.len(),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // All parts are text.
            Form::Short { length, bytes } => bytes
                .get(..usize::from(*length))
                .and_then(|bytes| str::from_utf8(bytes).ok())
                .unwrap_or_default(),
            Form::Long(path) => path,
        }
    }
}

/// A path in place with further parts, if it still fits.
fn appended(
    mut length: usize,
    bytes: &[u8; IN_PLACE],
    before: Option<char>,
    part: &str,
    after: &str,
) -> Option<Form> {
    let mut bytes = *bytes;
    if let Some(before) = before {
        *bytes.get_mut(length)? = u8::try_from(before).ok()?;
        length += 1;
    }
    for part in [part, after] {
        if !part.is_empty() {
            let end = length + part.len();
            bytes.get_mut(length..end)?.copy_from_slice(part.as_bytes());
            length = end;
        }
    }
    Some(Form::Short { length: u8::try_from(length).ok()?, bytes })
}

impl Default for FieldPath {
    fn default() -> FieldPath {
        FieldPath(Form::Short { length: 0, bytes: [0; IN_PLACE] })
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FieldPath").field(&self.as_str()).finish()
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
        f.write_str(if self.length() == 0 { "<nil>" } else { self.as_str() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_any_length_are_those_of_their_parts() {
        for length in IN_PLACE - 10..IN_PLACE + 10 {
            let name = "n".repeat(length);
            let path = FieldPath::new(&name).child("b").index(0).index(12).key("é");
            assert_eq!(path.as_str(), format!("{name}.b[0][12][é]"));
            assert_eq!(path, FieldPath::new(path.as_str()));
            assert_eq!(FieldPath::default().child(&name).as_str(), name);
        }
        assert_eq!(FieldPath::default().to_string(), "<nil>");
    }

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
