//! Server-side apply and field ownership: who set which field of an object, and what becomes of it
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).
//!
//! [`FieldManager`] is the way in: `update` does the bookkeeping of every other write, `apply` merges a configuration.
//! Both are pure functions on canonical trees. Sets of fields ([`FieldSet`]) are kept as the `FieldsV1` that objects
//! carry, so that a write touches only the entries and the branches that it changes.
//!
//! Not here: fields owned under a schema that has since made a list or a map atomic, or granular again, keep their paths.

mod apply;
mod atom;
mod compare;
mod conflict;
mod entry;
mod extract;
mod field_set;
mod manager;
mod merge;
mod path_element;
mod scale;
#[cfg(test)]
mod tests;

pub use apply::LAST_APPLIED;
pub use compare::{Comparison, compare};
pub use entry::{Entry, Operation};
pub use extract::field_set;
pub use field_set::FieldSet;
pub use manager::{FieldManager, MAX_UPDATE_MANAGERS, OneVersion, VersionConverter};
pub use merge::merge;
pub use path_element::PathElement;
