//! Server-side apply and field ownership
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).
//!
//! [`FieldManager`] is the entry point: `apply` merges a configuration, `update` records ownership for every other
//! write. Both are pure functions on canonical trees. Sets of fields ([`FieldSet`]) are the text that a tree has of them
//! until a write needs them, so that a write touches only the entries and branches that it changes.

mod apply;
mod atom;
mod compare;
mod configuration;
mod conflict;
mod created;
mod empty_items;
mod empty_metadata;
mod encode;
mod entry;
mod extract;
mod field_set;
mod keyless;
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

pub use apply::{Applied, LAST_APPLIED};
pub use compare::{Comparison, compare};
pub use configuration::{ConfigurationError, merge_configuration};
pub(crate) use encode::write_fields_v1;
pub use entry::{Entry, Operation, TimesComparison, is_same_but_owners, keep_times, take_owners};
pub use field_set::FieldSet;
pub use manager::{FieldManager, MAX_UPDATE_MANAGERS, OneVersion, VersionConverter};

pub use path_element::PathElement;
pub use scale::Replicas;
