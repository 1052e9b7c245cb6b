//! Reconciles the objects of priority and fairness, and applies them to this server
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/>).

mod bootstrap;
mod controller;

pub use bootstrap::FlowControlObjects;
pub use controller::FlowControlController;

use pintle_machinery::GroupResource;

fn flow_schemas() -> GroupResource {
    GroupResource::new("flowcontrol.apiserver.k8s.io", "flowschemas")
}

fn priority_levels() -> GroupResource {
    GroupResource::new("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
}
