//! Where a node is, copied to the labels of its pods
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podtopologylabels>).

use pintle_machinery::{GroupResource, Map, Status, StatusReason, ValueExt};
use pintle_registry::Registry;

/// The labels that pods take over from their node.
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// The labels of a node that its pods take over; none when there is no such node.
pub(super) async fn of_node(registry: &dyn Registry, name: &str) -> Result<Map, Status> {
    let nodes = GroupResource::new("", "nodes");
    let not_found = |status: &Status| status.reason == StatusReason::NotFound;
    // Only for a node that is new, or none at all, the store is asked.
    let node = match registry.get_cached(&nodes, "", name).await {
        Err(status) if not_found(&status) => registry.get(&nodes, "", name).await,
        cached => cached,
    };
    let node = match node {
        Ok(node) => node,
        Err(status) if not_found(&status) => return Ok(Map::new()),
        Err(status) => return Err(status),
    };
    let labels = node.map_at("metadata.labels");
    Ok(TOPOLOGY_LABELS
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), labels.get(*key)?.clone())))
        .collect())
}
