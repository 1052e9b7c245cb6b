//! What only custom resources have: a schema made at run time, and versions that may be far apart.

use crate::BoxFuture;
use pintle_machinery::{GroupVersion, Status, Value};
use pintle_schema::Schema;
use std::sync::{Arc, LazyLock};

/// A schema that is made when it is first needed. Most definitions of a cluster are idle, and a schema is large.
pub type LazySchema = LazyLock<Arc<Schema>, Box<dyn FnOnce() -> Arc<Schema> + Send>>;

/// Brings objects of a custom resource into another of its versions
/// (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>).
///
/// The objects may be of any mixture of versions. The answer has as many, in the same order, all of version `to`; whoever
/// implements this has checked that an answer from outside is that. What the schema of the version does not know is
/// pruned by the caller.
pub trait Converter: Send + Sync {
    /// Converts.
    ///
    /// # Errors
    /// The `Status` for the client, when not all of them can be converted.
    fn convert(&self, objects: Vec<Value>, to: &GroupVersion) -> BoxFuture<'_, Result<Vec<Value>, Status>>;
}

/// The conversion strategy `None`: versions differ in nothing but their name.
#[derive(Debug, Clone, Copy, Default)]
pub struct SameContent;

impl Converter for SameContent {
    fn convert(
        &self,
        mut objects: Vec<Value>,
        to: &GroupVersion,
    ) -> BoxFuture<'_, Result<Vec<Value>, Status>> {
        let version = to.to_string();
        for object in objects.iter_mut().filter_map(Value::as_object_mut) {
            object.insert("apiVersion".to_owned(), version.as_str().into());
        }
        Box::pin(std::future::ready(Ok(objects)))
    }
}
