//! Authorizes nodes: for their own Node object, the pods assigned to them and the objects those refer to
//! (<https://kubernetes.io/docs/reference/access-authn-authz/node/>).
//!
//! A node is a user in the group `system:nodes` whose name is `system:node:` and the node's name. Requests that are not
//! allowed here may be allowed by another authorizer.

mod graph;
mod populator;
mod references;
mod rules;

use crate::metrics::NodeMetrics;
use graph::{Graph, Vertex};
use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Decision, ResolvedRules, Verdict},
};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::{UserInfo, selectors::FieldOperator};
use pintle_supervisor::Supervisor;
pub use populator::NodeSources;
use populator::Populator;
use references::Kind;
use std::{
    borrow::Cow,
    future::ready,
    sync::{Arc, OnceLock},
};
use tokio::{sync::watch, task::JoinHandle};

/// The node authorizer.
pub struct NodeAuthorizer {
    graph: Arc<Graph>,
    metrics: Arc<NodeMetrics>,
    populators: OnceLock<Vec<Arc<Populator>>>,
}

/// Nodes read service accounts while one of these gates is open.
const SERVICE_ACCOUNT_GATES: [Gate; 2] =
    [Gate::KubeletServiceAccountTokenForCredentialProviders, Gate::PodCertificateRequest];

/// The group of all nodes.
const NODES: &str = "system:nodes";
const USER_PREFIX: &str = "system:node:";
/// The namespace of the nodes' leases.
const LEASE_NAMESPACE: &str = "kube-node-lease";

impl NodeAuthorizer {
    /// An authorizer with an empty graph: it allows only the requests that are allowed to every node.
    pub fn new(metrics: Arc<NodeMetrics>) -> Arc<NodeAuthorizer> {
        Arc::new(NodeAuthorizer { graph: Arc::default(), metrics, populators: OnceLock::new() })
    }

    /// Follows pods, volumes, attachments and slices until `stopping` becomes true. Call it once.
    pub fn follow(
        self: &Arc<Self>,
        sources: NodeSources,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let populators = sources.populators(&self.graph, &self.metrics);
        let tasks = populators.iter().map(|populator| populator.spawn(supervisor, stopping)).collect();
        if self.populators.set(populators).is_err() {
            tracing::error!("the node authorizer follows its sources already");
        }
        tasks
    }

    /// Waits until the graph has all objects that existed when [`NodeAuthorizer::follow`] was called. Returns at once
    /// without sources, and when the server stops.
    pub async fn wait_synced(&self) {
        for populator in self.populators() {
            // An error means that the server stops.
            drop(populator.synced().wait_for(|synced| *synced).await);
        }
    }

    fn populators(&self) -> impl Iterator<Item = &Arc<Populator>> {
        self.populators.get().into_iter().flatten()
    }

    /// Whether a node is connected with an object, after applying all events received so far.
    fn has_path(&self, from: Vertex<'_>, node: &str) -> bool {
        self.populators().for_each(|populator| populator.catch_up(node));
        self.graph.has_path(from, node)
    }

    fn decide(&self, attributes: &Attributes<'_>) -> Opinion {
        let Some(node) = node_name(attributes.user) else { return NOTHING_TO_SAY };
        if node.is_empty() {
            return refuse(format!("unknown node for user {}", quote(&attributes.user.name)));
        }
        if !attributes.is_resource_request {
            return NOTHING_TO_SAY;
        }
        let asked = Asked { authorizer: self, node, attributes };
        match (attributes.group, attributes.resource) {
            ("", "secrets") => asked.read_namespaced(Kind::Secret),
            ("", "configmaps") => asked.read_namespaced(Kind::ConfigMap),
            ("", "persistentvolumeclaims") if attributes.subresource == "status" => asked.claim_status(),
            ("", "persistentvolumeclaims") => asked.get(asked.referred(Kind::PersistentVolumeClaim)),
            ("", "persistentvolumes") => asked.get(Vertex::PersistentVolume(attributes.name)),
            ("resource.k8s.io", "resourceclaims") => asked.get(asked.referred(Kind::ResourceClaim)),
            ("storage.k8s.io", "volumeattachments") => asked.get(Vertex::VolumeAttachment(attributes.name)),
            ("", "serviceaccounts") => asked.service_account(),
            ("coordination.k8s.io", "leases") => asked.lease(),
            ("storage.k8s.io", "csinodes") => asked.csi_node(),
            ("resource.k8s.io", "resourceslices") => asked.resource_slice(),
            ("", "nodes") => asked.node_object(),
            ("", "pods") => asked.pod(),
            ("certificates.k8s.io", "podcertificaterequests") if enabled(Gate::PodCertificateRequest) => {
                asked.pod_certificate_request()
            }
            ("certificates.k8s.io", "podcertificaterequests") => NOTHING_TO_SAY,
            _ if rules::allow(attributes) => ALLOW,
            _ => NOTHING_TO_SAY,
        }
    }
}

impl Authorizer for NodeAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let verdict = match self.decide(attributes) {
            Ok(()) => Verdict::new(Decision::Allow),
            Err(reason) => Verdict { reason, ..Verdict::new(Decision::NoOpinion) },
        };
        Box::pin(ready(verdict))
    }

    fn rules_for<'a>(&'a self, user: &'a UserInfo, _: &'a str) -> BoxFuture<'a, ResolvedRules> {
        let rules = match node_name(user) {
            None => ResolvedRules::default(),
            Some(_) => ResolvedRules {
                incomplete: true,
                errors: vec!["node authorizer does not support user rule resolution".to_owned()],
                ..ResolvedRules::default()
            },
        };
        Box::pin(ready(rules))
    }
}

/// The name of the node that a user authenticates as.
pub fn node_name(user: &UserInfo) -> Option<&str> {
    user.name.strip_prefix(USER_PREFIX).filter(|_| user.is_member_of(NODES))
}

/// Allowed, or the reason why this authorizer does not allow the request.
type Opinion = Result<(), Cow<'static, str>>;

const ALLOW: Opinion = Ok(());
const NOTHING_TO_SAY: Opinion = Err(Cow::Borrowed(""));

fn refuse(reason: impl Into<Cow<'static, str>>) -> Opinion {
    Err(reason.into())
}

/// A request of a node.
struct Asked<'a> {
    authorizer: &'a NodeAuthorizer,
    node: &'a str,
    attributes: &'a Attributes<'a>,
}

impl<'a> Asked<'a> {
    fn referred(&self, kind: Kind) -> Vertex<'a> {
        Vertex::Referred(kind, self.attributes.namespace, self.attributes.name)
    }

    /// Allows a request for a named object that the node is connected with.
    fn connected(&self, with: Vertex<'_>) -> Opinion {
        if self.attributes.name.is_empty() {
            return refuse("No Object name found");
        }
        self.related(with)
    }

    fn related(&self, with: Vertex<'_>) -> Opinion {
        match self.authorizer.has_path(with, self.node) {
            true => ALLOW,
            false => refuse(format!("no relationship found between node '{}' and this object", self.node)),
        }
    }

    fn get(&self, vertex: Vertex<'_>) -> Opinion {
        if self.attributes.verb != "get" {
            return refuse("can only get individual resources of this type");
        }
        if !self.attributes.subresource.is_empty() {
            return refuse("cannot get subresource");
        }
        self.connected(vertex)
    }

    fn read_namespaced(&self, kind: Kind) -> Opinion {
        if !matches!(self.attributes.verb, "get" | "list" | "watch") {
            return refuse("can only read resources of this type");
        }
        if !self.attributes.subresource.is_empty() {
            return refuse("cannot read subresource");
        }
        if self.attributes.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.connected(self.referred(kind))
    }

    fn claim_status(&self) -> Opinion {
        match self.attributes.verb {
            "update" | "patch" => self.connected(self.referred(Kind::PersistentVolumeClaim)),
            _ => refuse("can only get/update/patch this type"),
        }
    }

    fn service_account(&self) -> Opinion {
        let Attributes { verb, subresource, name, .. } = *self.attributes;
        if (verb, subresource) == ("get", "") {
            return match SERVICE_ACCOUNT_GATES.into_iter().any(enabled) {
                true => self.read_namespaced(Kind::ServiceAccount),
                false => refuse("not allowed to get service accounts"),
            };
        }
        if verb != "create" || name.is_empty() {
            return refuse("can only create tokens for individual service accounts");
        }
        if subresource != "token" {
            return refuse("can only create token subresource of serviceaccount");
        }
        self.related(self.referred(Kind::ServiceAccount))
    }

    fn lease(&self) -> Opinion {
        let Attributes { verb, namespace, name, .. } = *self.attributes;
        if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
            return refuse("can only get, create, update, patch, or delete a node lease");
        }
        if namespace != LEASE_NAMESPACE {
            return refuse("can only access leases in the \"kube-node-lease\" system namespace");
        }
        // The name of a created lease is in the body, which admission checks.
        if verb != "create" && name != self.node {
            return refuse("can only access node lease with the same name as the requesting node");
        }
        ALLOW
    }

    fn csi_node(&self) -> Opinion {
        let Attributes { verb, subresource, name, .. } = *self.attributes;
        if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
            return refuse("can only get, create, update, patch, or delete a CSINode");
        }
        if !subresource.is_empty() {
            return refuse("cannot authorize CSINode subresources");
        }
        if verb != "create" && name != self.node {
            return refuse("can only access CSINode with the same name as the requesting node");
        }
        ALLOW
    }

    fn resource_slice(&self) -> Opinion {
        if !self.attributes.subresource.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match self.attributes.verb {
            // Admission checks created objects.
            "create" => ALLOW,
            "get" | "update" | "patch" | "delete" => {
                self.connected(Vertex::ResourceSlice(self.attributes.name))
            }
            "watch" | "list" | "deletecollection" => match self.selects_own("spec.nodeName") {
                true => ALLOW,
                false => {
                    refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
                }
            },
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, \
                 deletecollection",
            ),
        }
    }

    fn pod_certificate_request(&self) -> Opinion {
        let Attributes { verb, subresource, namespace, name, .. } = *self.attributes;
        if !subresource.is_empty() {
            return refuse("nodes may not access the status subresource of PodCertificateRequests");
        }
        match verb {
            // Admission checks created objects.
            "create" => ALLOW,
            "get" => self.connected(Vertex::PodCertificateRequest(namespace, name)),
            "list" | "watch" if self.selects_own("spec.nodeName") => ALLOW,
            "list" | "watch" => {
                refuse("can only list/watch podcertificaterequests with nodeName field selector")
            }
            verb => refuse(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn node_object(&self) -> Opinion {
        let Attributes { verb, subresource, name, .. } = *self.attributes;
        match (subresource, verb) {
            // Admission checks that the Node is the node's own.
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => ALLOW,
            // By name rather than by the graph: a kubelet reads its Node before it exists.
            ("", "get" | "list" | "watch") if name == self.node => ALLOW,
            ("", "get" | "list" | "watch") if name.is_empty() => {
                refuse(format!("node '{}' cannot read all nodes, only its own Node object", self.node))
            }
            ("", "get" | "list" | "watch") => {
                refuse(format!("node '{}' cannot read '{name}', only its own Node object", self.node))
            }
            _ => NOTHING_TO_SAY,
        }
    }

    fn pod(&self) -> Opinion {
        let Attributes { verb, subresource, namespace, name, .. } = *self.attributes;
        match (subresource, verb) {
            ("", "get") => self.get(Vertex::Pod(namespace, name)),
            ("", "list" | "watch") if self.selects_own("spec.nodeName") => ALLOW,
            ("", "list" | "watch") if !name.is_empty() => self.connected(Vertex::Pod(namespace, name)),
            ("", "list" | "watch") => refuse("can only list/watch pods with spec.nodeName field selector"),
            // Mirror pods, status and evictions of the node's own pods: admission checks the pod's node.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => ALLOW,
            _ => NOTHING_TO_SAY,
        }
    }

    /// Whether the field selector restricts the request to this node's objects.
    fn selects_own(&self, field: &str) -> bool {
        let terms = self.attributes.selectors.map_or(&[][..], |selectors| &selectors.field_terms);
        terms.iter().any(|term| {
            term.field == field && term.operator == FieldOperator::Equals && term.value == self.node
        })
    }
}

#[cfg(test)]
mod tests;
