//! The OpenAPI 2 documents of other servers, and their merge with the document of this server.
//!
//! Other servers are not trusted: a document is read by the shape of OpenAPI 2 ([`shape`]), its size and depth are bounded,
//! and references are followed once each, so that cycles end.

mod document;
mod merge;
mod references;
mod shape;

pub use document::{PackedDocument, RemoteDocument};
pub(crate) use merge::{Fingerprint, LocalNames, Merge, fingerprint, fingerprint_of_name, with_kinds};

use std::{collections::BTreeMap, sync::Arc};

/// The documents of other servers.
pub trait RemoteDocuments: Send + Sync {
    /// The current documents, in the order in which they are merged: a later document never changes the paths and
    /// definitions of an earlier one.
    fn current(&self) -> Vec<Arc<PackedDocument>>;

    /// The URLs of the OpenAPI 3 documents of other servers, by key.
    fn index(&self) -> BTreeMap<String, String>;
}
