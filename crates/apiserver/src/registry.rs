//! The registry: the only writer to storage.
//!
//! A [`Store`] serves one stored resource for all its versions. [`Stores`] has all of them, and is how strategies,
//! admission and controllers access other resources' objects.

mod changes;
mod codec;
mod conversions;
mod create;
mod custom_resources;
mod declaration_error;
mod decoded_objects;
mod delete;
mod field_manager;
mod invalid;
mod outline;
mod resource_stats;
mod revision;
mod server_access;
mod storage_codec;
mod storage_factory;
mod store;
mod stores;
#[cfg(test)]
mod tests;
mod update;
mod versioned_resource;
mod versions;

pub use changes::changes;
pub use codec::{ObjectCodec, TypeSchema};
pub use conversions::Conversions;
pub use create::{AcceptAll, Validation};
pub use custom_resources::CustomResource;
pub use declaration_error::DeclarationError;
pub use delete::{DeleteAnswer, Deleted};
pub use field_manager::ManagedWrite;
pub use resource_stats::StoredResourceStats;
pub use revision::{metadata_json, remove_revision, splice_revision};
pub use storage_codec::{StorageCodec, StorageMediaType, UnknownStorageMediaType};
pub use storage_factory::{Engine, ResourceTransformers, StorageFactory, StorageObserver};
pub(crate) use store::namespace_required;
pub use store::{Store, StoreConfig, Written};
pub use stores::Stores;
pub use update::{Transform, Updated, Upsert};
pub use versioned_resource::VersionedResource;
pub(crate) use versions::{convert_stored, drop_malformed_metadata, is_of_version, keep_declared_metadata};
