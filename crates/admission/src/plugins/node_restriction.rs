//! `NodeRestriction`: limits a node to its own node object, its own pods, and the objects that belong to them
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction>).
//!
//! The node authorizer decides by the path of a request; this plugin decides by its object.

mod api_references;
mod lookup;
mod nodes;
mod objects;
mod pod_certificate_requests;
mod pods;
mod service_accounts;

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, UserInfo};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct NodeRestriction;

impl AdmissionPlugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation != Operation::Connect
            && node_of(request.context.user).is_some()
            && is_restricted(&request.resource.group_resource())
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(node) = node_of(request.context.user) else { return Ok(()) };
            if node.is_empty() {
                let why = format!("could not determine node from user {}", quote(&request.context.user.name));
                return Err(request.forbidden(why));
            }
            match (request.resource.group.as_str(), request.resource.resource.as_str()) {
                ("", "pods") => pods::admit(request, node).await,
                ("", "nodes") => nodes::admit(request, node),
                ("", "persistentvolumeclaims") => objects::admit_claim(request, node),
                ("", "serviceaccounts") => service_accounts::admit(request, node).await,
                ("coordination.k8s.io", "leases") => objects::admit_lease(request, node),
                ("storage.k8s.io", "csinodes") => objects::admit_csi_node(request, node),
                ("resource.k8s.io", "resourceslices") => objects::admit_resource_slice(request, node),
                ("certificates.k8s.io", "certificatesigningrequests")
                    if !enabled(Gate::AllowInsecureKubeletCertificateSigningRequests) =>
                {
                    objects::admit_certificate_signing_request(request, node)
                }
                ("certificates.k8s.io", "podcertificaterequests") => {
                    pod_certificate_requests::admit(request, node).await
                }
                _ => Ok(()),
            }
        })
    }
}

fn is_restricted(resource: &GroupResource) -> bool {
    matches!(
        (resource.group.as_str(), resource.resource.as_str()),
        ("", "pods" | "nodes" | "persistentvolumeclaims" | "serviceaccounts")
            | ("coordination.k8s.io", "leases")
            | ("storage.k8s.io", "csinodes")
            | ("resource.k8s.io", "resourceslices")
            | ("certificates.k8s.io", "certificatesigningrequests" | "podcertificaterequests")
    )
}

/// The node that a user is, which may be ""; `None` for other users.
fn node_of(user: &UserInfo) -> Option<&str> {
    let name = user.name.strip_prefix("system:node:")?;
    user.groups.iter().any(|group| group == "system:nodes").then_some(name)
}

#[cfg(test)]
mod tests;
