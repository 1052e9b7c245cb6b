//! What API objects mean: field facts of the built-in v1.36 types, and of custom resources.
//!
//! An object in flight is a dynamic value tree; a [`Schema`] says what is in it. It is an arena of
//! nodes, one for each type and for each list or map of them, walked with the small copyable cursor
//! [`SchemaRef`]. The built-in types ([`Schema::builtin`]) and a custom resource's structural schema
//! are the same type, so that decoding, pruning, defaulting, patching and merging are written once.
//!
//! Invariants:
//! - every [`NodeId`] inside a schema points into the same schema, or is a reference to a built-in node
//!   that the cursor follows by itself;
//! - the fields of a struct are in Go's declaration order with embedded structs flattened, which is
//!   the order Go's JSON encoder writes them in.
//!
//! This crate knows no HTTP, no disk and no encoding: it states facts, others act on them.

mod builder;
mod builtin;
mod cursor;
mod defaults;
mod emptiness;
mod field;
mod node;
mod schema;

pub use builder::{FieldSpec, SchemaBuilder, StructSpec};
pub use cursor::{FieldRef, Fields, Member, SchemaRef};
pub use defaults::default_by_schema;
pub use field::{Omit, PatchStrategy};
pub use node::{ListType, MapType, NodeId, Structural, Type, Union};
pub use schema::{Kind, Schema};
