//! The API endpoints of one server.

use crate::{base::negotiation::MediaTypes, metrics::Metrics, registry::Stores, transports::Transports};
use pintle_admission::AdmissionChain;
use pintle_auth::authz::Authorizer;
use std::{sync::Arc, time::Duration};

/// Serves the resources of one server.
#[non_exhaustive]
pub struct ApiEndpoints {
    /// The resources and their stores.
    pub stores: Arc<Stores>,
    /// The admission chain of every write.
    pub admission: AdmissionChain,
    /// Authorizes the actions of a request beyond its verb, such as create-on-update.
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether unreadable objects can be deleted (feature gate `AllowUnsafeMalformedObjectDeletion`).
    pub unsafe_deletes: bool,
    /// Whether lists and watches may select a shard (feature gate `ShardedListAndWatch`). Without it, their selector
    /// is ignored.
    pub has_shards: bool,
    /// The least time of a watch that names none; watches last up to twice as long.
    pub min_request_timeout: Duration,
    /// How many objects of a collection are deleted at the same time; zero is one.
    pub delete_collection_workers: usize,
    /// The encodings of resources.
    pub media_types: MediaTypes,
    /// The clients of the destinations of streams and proxied requests.
    pub transports: Arc<Transports>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Becomes true when open watches have to end.
    pub shutdown: tokio::sync::watch::Receiver<bool>,
}

impl ApiEndpoints {
    /// The endpoints of a server without admission plugins, with the limits that kube-apiserver has by default.
    pub fn new(
        stores: Arc<Stores>,
        authorizer: Arc<dyn Authorizer>,
        transports: Arc<Transports>,
        metrics: Arc<Metrics>,
        shutdown: tokio::sync::watch::Receiver<bool>,
    ) -> ApiEndpoints {
        ApiEndpoints {
            stores,
            admission: AdmissionChain::new(Vec::new()),
            authorizer,
            unsafe_deletes: false,
            has_shards: false,
            min_request_timeout: Duration::from_secs(1800),
            delete_collection_workers: 1,
            media_types: MediaTypes::COMMON,
            transports,
            metrics,
            shutdown,
        }
    }
}
