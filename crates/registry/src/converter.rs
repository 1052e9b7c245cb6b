//! Converts objects that are stored as written between the versions of their resource.

use crate::BoxFuture;
use pintle_machinery::{GroupVersion, Status, Value};

/// Converts objects of a resource to another of its versions
/// (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>).
///
/// The objects may be of any mixture of versions. The result has the same number of objects in the same order, all of
/// version `to`; an implementation that calls a webhook checks this. The caller prunes fields that the schema of the
/// version does not have.
pub trait Converter: Send + Sync {
    /// Converts all objects to `to`.
    ///
    /// # Errors
    /// The `Status` for the client, when at least one object cannot be converted.
    fn convert(&self, objects: Vec<Value>, to: &GroupVersion) -> BoxFuture<'_, Result<Vec<Value>, Status>>;

    /// Whether only `apiVersion` changes: selectors then match an object in all versions alike.
    fn keeps_content(&self) -> bool {
        false
    }
}

/// The conversion strategy `None`: only `apiVersion` changes.
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
            object.insert("apiVersion", version.as_str().into());
        }
        Box::pin(std::future::ready(Ok(objects)))
    }

    fn keeps_content(&self) -> bool {
        true
    }
}
