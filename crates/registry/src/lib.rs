//! What a resource is, apart from how it is served.
//!
//! A [`Resource`] is a declaration: names, scope, schema, [`Strategy`], columns, subresources, selectable fields.
//! Routing, discovery, OpenAPI, storage keys and tables follow from it in the generic server; the built-in kinds
//! declare theirs in the `api` crate, custom resources make theirs at run time. There is no HTTP here, no disk,
//! and no kind.

mod access;
mod context;
mod custom;
mod resource;
mod selectable;
mod strategy;
mod subresource;
mod table;
#[cfg(feature = "testing")]
pub mod testing;

pub use access::{DeleteOptions, PropagationPolicy, Registry, WriteOptions};
pub use context::RequestContext;
pub use custom::{Converter, LazySchema, SameContent};
pub use resource::{
    Backing, Conversion, Resource, Scope, StorageEncoding, StorageLocation, StoredVersion, Verb,
};
pub use selectable::SelectableField;
pub use strategy::{DefaultStrategy, FinishFn, Strategy};
pub use subresource::{ConnectOptions, NamedCreater, ScalePaths, Subresource, SubresourceKind};
pub use table::{Cell, Column, DefaultTable, TableConvertor};

pub use pintle_auth::BoxFuture;
