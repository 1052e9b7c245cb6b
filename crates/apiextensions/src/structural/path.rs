//! The position of a walk in an object; its text is built only when needed.

use std::fmt;

use pintle_machinery::{FieldPath, field_path::push_name};

/// A position in an object, as a chain of steps on the walker's stack.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    step: Step<'a>,
    parent: Option<&'a Path<'a>>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    /// The position of the walked value in a larger object.
    Base(&'a str),
    /// A member: `.name`; at the start of a path without the dot.
    Child(&'a str),
    /// A member with a leading dot even at the start of a path.
    Member(&'a str),
    /// A member of a map: `[key]` in field paths.
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Path<'static> = Path { step: Step::Root, parent: None };

    /// The start of a walk through a part of an object.
    pub(super) fn base(position: &'a FieldPath) -> Path<'a> {
        Path { step: Step::Base(position.as_str()), parent: None }
    }

    pub(super) fn child(&'a self, name: &'a str) -> Path<'a> {
        Path { step: Step::Child(name), parent: Some(self) }
    }

    pub(super) fn member(&'a self, name: &'a str) -> Path<'a> {
        Path { step: Step::Member(name), parent: Some(self) }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { step: Step::Key(key), parent: Some(self) }
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path { step: Step::Index(index), parent: Some(self) }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    pub(super) fn to_field_path(self) -> FieldPath {
        FieldPath::new(&self.to_string())
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Root => {}
            Step::Base(position) => out.push_str(position),
            Step::Child(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                push_name(out, name);
            }
            Step::Member(name) => {
                out.push('.');
                push_name(out, name);
            }
            Step::Key(key) => {
                out.push('[');
                push_name(out, key);
                out.push(']');
            }
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}
