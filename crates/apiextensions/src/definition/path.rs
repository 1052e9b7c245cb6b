//! The position of a check in a definition; its text is built only for an error.
//!
//! A schema has thousands of positions and rarely an error, so a path is a chain on the stack, and the reporter of an
//! error builds its text.

use pintle_machinery::{FieldPath, field_path::push_name};

/// A position in the definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// A field of the definition itself.
    pub(super) fn new(name: &'a str) -> Path<'a> {
        Path { parent: None, step: Step::Child(name) }
    }

    /// A member of this field.
    pub(super) fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Child(name) }
    }

    /// An item of this list.
    pub(super) fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// A value of this map.
    pub(super) fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// The text of the path in messages.
    pub(super) fn text(&self) -> String {
        let mut steps = vec![self.step];
        let mut at = self.parent;
        while let Some(path) = at {
            steps.push(path.step);
            at = path.parent;
        }
        let mut text = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Child(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Step::Index(index) => text.push_str(&format!("[{index}]")),
                Step::Key(key) => {
                    text.push('[');
                    push_name(&mut text, key);
                    text.push(']');
                }
            }
        }
        text
    }

    /// The path for an error.
    pub(super) fn field(&self) -> FieldPath {
        FieldPath::new(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_of_the_steps() {
        let spec = Path::new("spec");
        let versions = spec.child("versions");
        let version = versions.index(1);
        let properties = version.child("properties");
        assert_eq!(properties.key("a.b").text(), "spec.versions[1].properties[a.b]");
    }
}
