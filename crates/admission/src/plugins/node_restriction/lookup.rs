//! Looks up the objects that a node refers to.

use crate::AdmissionRequest;
use pintle_machinery::{GroupResource, Status, StatusReason, Value};
use std::sync::Arc;

/// Returns an object that a node refers to.
///
/// # Errors
/// 404 under the singular of the resource when it does not exist; 403 when it cannot be read.
pub(super) async fn find(
    request: &AdmissionRequest<'_>,
    resource: &'static str,
    namespace: &str,
    name: &str,
) -> Result<Arc<Value>, Status> {
    let resources = GroupResource::new("", resource);
    request.get(&resources, namespace, name).await.map_err(|status| match status.reason {
        StatusReason::NotFound => {
            Status::not_found(&GroupResource::new("", resource.trim_end_matches('s')), name)
        }
        _ => request.forbidden(status.message),
    })
}
