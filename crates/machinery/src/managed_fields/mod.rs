//! Server-side apply and field ownership: who set which field of an object, and what becomes of it
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).
//!
//! [`FieldManager`] is the way in: `update` does the bookkeeping of every other write, `apply` merges a configuration.
//! Both are pure functions on canonical trees. Sets of fields ([`FieldSet`]) are kept as the `FieldsV1` that objects
//! carry, so that a write touches only the entries and the branches that it changes.

mod apply;
mod atom;
mod compare;
mod conflict;
mod encode;
mod entry;
mod extract;
mod field_set;
mod manager;
mod merge;
mod path_element;
#[cfg(test)]
mod properties;
mod reconcile;
mod scale;
#[cfg(test)]
mod tests;
mod validate;

pub use apply::LAST_APPLIED;
pub use compare::{Comparison, compare};
pub(crate) use encode::write_fields_v1;
pub use entry::{Entry, Operation, keep_times};
pub use field_set::FieldSet;
pub use manager::{FieldManager, MAX_UPDATE_MANAGERS, OneVersion, VersionConverter};

pub use path_element::PathElement;
pub use scale::Replicas;
