//! Declares resources, independently of how they are served or stored.
//!
//! A [`Resource`] is a declaration: names, scope, schema, [`Strategy`], columns, subresources, selectable fields.
//! Routing, discovery, OpenAPI, storage keys and tables follow from it in the generic server. The `api` crate declares
//! the built-in kinds; custom resources are declared at run time. This crate knows no HTTP, no disk, and no kind by
//! name.

mod access;
mod client;
mod computed_objects;
mod connecter;
mod context;
mod converter;
mod empty_fields;
mod keep;
mod object_model;
mod resource;
mod resource_info;
mod selectable;
mod storage_version_manager;
mod strategy;
mod subresource;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod verb;

pub use access::{DeleteOptions, Preconditions, PropagationPolicy, Registry, ServedKind, WriteOptions};
pub use client::{Client, PatientClient};
pub use computed_objects::ComputedObjects;
pub use connecter::{
    ConnectService, Connecter, Destination, Location, Scheme, Stream, Transport, is_proxyable,
};
pub use context::RequestContext;
pub use converter::{Converter, SameContent};
pub use empty_fields::EmptyFields;
pub use keep::keep;
pub use object_model::{ObjectForm, ObjectModel, PatchType, Routing};
pub use resource::{
    Backing, Conversion, LazySchema, Resource, Scope, StorageEncoding, StorageLocation, StoredVersion,
};
pub use resource_info::ResourceInfo;
pub use selectable::SelectableField;
pub use storage_version_manager::{PendingUpdate, StorageVersionManager};
pub use strategy::{DefaultStrategy, FinishFn, FirstPropagation, GarbageCollectionPolicy, Strategy};
pub use subresource::{
    ConnectOptions, NamedCreater, Remarks, ScalePaths, ScaleValues, Subresource, SubresourceKind,
};
pub use table::{Cell, Column, DefaultTable, TableConvertor};
pub use verb::Verb;

pub use pintle_auth::BoxFuture;
