//! `RangeAllocation`: the allocated node ports, an internal resource that is not served to clients.

use super::{group::GROUP, service::RANGE_ALLOCATION_NAME};
use crate::declare::Declare;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Resource, Strategy};

/// The declaration. The storage key and format are those of kube-apiserver.
pub fn resource() -> Resource {
    GROUP
        .cluster("RangeAllocation", "servicenodeportallocations")
        .verbs([])
        .stored_at("ranges")
        .ruled(RangeAllocationStrategy)
}

/// The uid of the single object, because kube-apiserver stores it without one.
const UID: &str = "00000000-0000-0000-0000-000000000001";

struct RangeAllocationStrategy;

impl Strategy for RangeAllocationStrategy {
    /// Sets name and uid, because kube-apiserver stores the object without them: only its key identifies it.
    fn set_defaults(&self, object: &mut Value) {
        for (member, value) in [("metadata.name", RANGE_ALLOCATION_NAME), ("metadata.uid", UID)] {
            if object.str_at(member).is_empty() {
                object.set(member, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn what_kube_apiserver_stores_gets_an_identity() {
        let mut object = json!({"metadata": {}, "range": "30000-32767", "data": ""});
        RangeAllocationStrategy.set_defaults(&mut object);
        assert_eq!(object["metadata"], json!({"name": "servicenodeports", "uid": UID}));
        let before = object.clone();
        RangeAllocationStrategy.set_defaults(&mut object);
        assert_eq!(object, before);
    }
}
