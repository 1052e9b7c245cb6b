//! Ends and breaks.
