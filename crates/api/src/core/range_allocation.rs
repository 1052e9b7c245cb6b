//! What is taken of a range: the server's own, which no client is served.

use super::GROUP;
use crate::declare::Declare;
use pintle_registry::Resource;

/// The declaration. The objects are kube-apiserver's, at the same place in the store.
pub fn resource() -> Resource {
    GROUP.cluster("RangeAllocation", "servicenodeportallocations").verbs([]).stored_at("ranges")
}
