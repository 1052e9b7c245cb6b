//! Errors at positions of the source.

/// An error at a position.
#[derive(Clone, Debug)]
pub(crate) struct Issue {
    pub(crate) location: Location,
    pub(crate) message: String,
}

/// A position in a source: a line from 1 and a column from 0, in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) line: i64,
    pub(crate) column: i64,
}

impl Location {
    /// The position of an error of the source as a whole.
    pub(crate) const NONE: Location = Location { line: -1, column: -1 };
}
