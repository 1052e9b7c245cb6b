//! What is taken of a range: the server's own, which no client is served.

use super::{GROUP, service::RANGE_ALLOCATION_NAME};
use crate::declare::Declare;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Resource, Strategy};

/// The declaration. The objects are kube-apiserver's, at the same place in the store.
pub fn resource() -> Resource {
    GROUP
        .cluster("RangeAllocation", "servicenodeportallocations")
        .verbs([])
        .stored_at("ranges")
        .ruled(RangeAllocationStrategy)
}

/// The uid of the one object, for kube-apiserver gives it none.
const UID: &str = "00000000-0000-0000-0000-000000000001";

struct RangeAllocationStrategy;

impl Strategy for RangeAllocationStrategy {
    /// Kube-apiserver stores the object without a name and a uid; its key is all there is to tell it by.
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
    use serde_json::json;

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
