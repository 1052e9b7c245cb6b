//! Positions in the tables of a schema.

/// A slice of the schema's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A run of entries in one of the schema's side tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Run {
    pub(super) fn of<T>(self, table: &[T]) -> &[T] {
        let start = self.start as usize;
        table.get(start..start + self.len as usize).unwrap_or_default()
    }
}
