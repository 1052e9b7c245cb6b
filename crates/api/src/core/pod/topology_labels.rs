//! Copies the topology labels of a node to its pods
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podtopologylabels>).

use pintle_machinery::{GroupResource, Map, Status, StatusReason, ValueExt};
use pintle_registry::Registry;

/// The labels that are copied.
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// The topology labels of a node; none when the node does not exist.
pub(super) async fn of_node(registry: &dyn Registry, name: &str) -> Result<Map, Status> {
    let nodes = GroupResource::new("", "nodes");
    let not_found = |status: &Status| status.reason == StatusReason::NotFound;
    // The store is read only when the cache does not have the node.
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
