//! Declares resources, independently of how they are served or stored.
//!
//! A [`Resource`] is a declaration: names, scope, schema, [`Strategy`], columns, subresources, selectable fields.
//! Routing, discovery, OpenAPI, storage keys and tables follow from it in the generic server. The `api` crate declares
//! the built-in kinds; custom resources are declared at run time. This crate knows no HTTP, no disk, and no kind by
//! name.

mod access;
mod context;
mod custom;
mod keep;
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
pub use keep::keep;
pub use resource::{
    Backing, Conversion, Resource, Scope, StorageEncoding, StorageLocation, StoredVersion, Verb,
};
pub use selectable::SelectableField;
pub use strategy::{DefaultStrategy, FinishFn, Strategy};
pub use subresource::{ConnectOptions, NamedCreater, ScalePaths, Subresource, SubresourceKind};
pub use table::{Cell, Column, DefaultTable, TableConvertor};

pub use pintle_auth::BoxFuture;
