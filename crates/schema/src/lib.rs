//! Describes the fields of API types: of the built-in v1.36 types, and of custom resources.
//!
//! The server handles an object as a dynamic value tree; a [`Schema`] describes its fields. It is an arena of nodes,
//! one for each type and for each list or map of them, read with the small copyable cursor [`SchemaRef`]. The built-in
//! types ([`Schema::builtin`]) and a custom resource's structural schema are the same type, so that decoding, pruning,
//! defaulting, patching and merging are written once.
//!
//! Invariants:
//! - every [`NodeId`] inside a schema points into the same schema, or is a reference to a built-in node that the cursor
//!   resolves;
//! - the fields of a struct are in Go's declaration order with embedded structs flattened, which is
//!   the order Go's JSON encoder writes them in.
//!
//! This crate knows no HTTP, no disk and no encoding; other crates decode, default and merge by its facts.

mod builder;
mod builtin;
mod cursor;
mod defaults;
mod emptiness;
mod field;
mod lookup;
mod node;
mod schema;

pub use builder::{FieldSpec, SchemaBuilder, StructSpec};
pub use cursor::{FieldRef, Fields, Member, SchemaRef};
pub use defaults::default_by_schema;
pub use field::{Omit, PatchStrategy};
pub use lookup::Kind;
pub use node::{ListType, MapType, NodeId, Structural, Type, Union};
pub use schema::Schema;
