//! The `Available` condition of API services
//! (<https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>).
//!
//! API services without a service are available. Whether the server behind a service is available is checked when the
//! API service, the service or its endpoints change, and at an interval.

mod metrics;
mod probe;
mod remote;

pub use metrics::AvailabilityMetrics;
pub use remote::RemoteAvailability;

use crate::{api_service::resource_name, condition::Availability};
use pintle_apiserver::registry::Stores;
use pintle_machinery::{Status, Value, meta::ObjectMeta};
use pintle_registry::{Registry, WriteOptions};

/// Writes the condition of the API service in this state. Returns whether it was written; not when it has the condition
/// already, or has changed or gone meanwhile: the event of that change follows.
///
/// # Errors
/// The `Status` of a write that fails for another reason.
pub(crate) async fn write(
    stores: &Stores,
    object: &Value,
    availability: &Availability,
) -> Result<bool, Status> {
    if !availability.set(&mut object.clone()) {
        return Ok(false);
    }
    let (availability, version) = (availability.clone(), object.resource_version().to_owned());
    let name = object.name().to_owned();
    let change = Box::new(move |mut object: Value| {
        if object.resource_version() != version {
            return Err(Status::conflict(&resource_name(), object.name(), "it has changed"));
        }
        availability.set(&mut object);
        Ok(object)
    });
    let options = WriteOptions {
        field_manager: "kube-apiserver".to_owned(),
        subresource: "status",
        ..WriteOptions::default()
    };
    match stores.update(&resource_name(), "", &name, change, options).await {
        Ok(_) => Ok(true),
        Err(status) if matches!(status.code, 404 | 409) => Ok(false),
        Err(status) => Err(status),
    }
}
