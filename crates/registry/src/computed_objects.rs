//! Objects that are computed for each read.

use crate::BoxFuture;
use pintle_machinery::{Status, Value};
use std::fmt;

/// Computes the objects of a resource for each read, within a bounded time. Nothing is stored, and nothing can be watched.
pub trait ComputedObjects: Send + Sync {
    /// All objects.
    fn list(&self) -> BoxFuture<'_, Vec<Value>>;

    /// The object of this name.
    ///
    /// # Errors
    /// 404 when there is none.
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Value, Status>>;
}

impl fmt::Debug for dyn ComputedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputedObjects").finish_non_exhaustive()
    }
}
