//! The graph of objects that nodes may read.
//!
//! A pod connects its node with the objects that it refers to; a volume connects its secrets with its claim, and so
//! with the nodes of the claim's pods. Each object has the nodes that it is connected with, counted by pods, so that a
//! query is a few lookups however many pods there are. Objects without a connection are removed.
//!
//! The graph is behind one lock. Writers hold it for the lookups of one pod, readers for those of one query.

use super::references::Kind;
use parking_lot::RwLock;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

type ByName<T> = HashMap<Arc<str>, T>;
type ByNamespace<T> = HashMap<Arc<str>, ByName<T>>;

/// The graph of nodes and the objects they may read.
#[derive(Default)]
pub(super) struct Graph(RwLock<Edges>);

/// An object that a node requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vertex<'a> {
    /// An object that a pod refers to: kind, namespace, name.
    Referred(Kind, &'a str, &'a str),
    Pod(&'a str, &'a str),
    PersistentVolume(&'a str),
    VolumeAttachment(&'a str),
    ResourceSlice(&'a str),
    /// Its namespace and name.
    PodCertificateRequest(&'a str, &'a str),
}

#[derive(Default)]
struct Edges {
    pods: ByNamespace<Pod>,
    /// The nodes of the objects that pods refer to, with the number of referring pods per node.
    referred: HashMap<Kind, ByNamespace<ByName<u32>>>,
    volumes: ByName<Volume>,
    /// The volumes that need each secret.
    volumes_of_secrets: ByNamespace<HashSet<Arc<str>>>,
    attachments: ByName<Arc<str>>,
    slices: ByName<Arc<str>>,
    /// By `namespace/name`.
    certificate_requests: ByName<Arc<str>>,
}

/// An assigned pod.
#[derive(PartialEq, Eq)]
struct Pod {
    node: Arc<str>,
    references: Box<[(Kind, Arc<str>)]>,
}

/// A bound volume.
struct Volume {
    claim: (Arc<str>, Arc<str>),
    secrets: Box<[(Arc<str>, Arc<str>)]>,
}

impl Graph {
    /// Whether a node is connected with an object.
    pub(super) fn has_path(&self, from: Vertex<'_>, node: &str) -> bool {
        let edges = self.0.read();
        match from {
            Vertex::Referred(Kind::Secret, namespace, name) => {
                edges.refers(Kind::Secret, namespace, name, node)
                    || edges.volumes_of_secrets.get(namespace).and_then(|names| names.get(name)).is_some_and(
                        |volumes| volumes.iter().any(|volume| edges.volume_reaches(volume, node)),
                    )
            }
            Vertex::Referred(kind, namespace, name) => edges.refers(kind, namespace, name, node),
            Vertex::Pod(namespace, name) => edges
                .pods
                .get(namespace)
                .and_then(|names| names.get(name))
                .is_some_and(|pod| *pod.node == *node),
            Vertex::PersistentVolume(name) => edges.volume_reaches(name, node),
            Vertex::VolumeAttachment(name) => edges.attachments.get(name).is_some_and(|of| **of == *node),
            Vertex::ResourceSlice(name) => edges.slices.get(name).is_some_and(|of| **of == *node),
            Vertex::PodCertificateRequest(namespace, name) => {
                let key = Owned::PodCertificateRequest.key(namespace, name);
                edges.certificate_requests.get(&*key).is_some_and(|of| **of == *node)
            }
        }
    }

    /// Adds or replaces an assigned pod; returns whether the graph changed.
    pub(super) fn set_pod<'a>(
        &self,
        namespace: &str,
        name: &str,
        node: &str,
        references: impl ExactSizeIterator<Item = (Kind, &'a str)> + Clone,
    ) -> bool {
        {
            let edges = self.0.read();
            let known = edges.pods.get(namespace).and_then(|names| names.get(name));
            let is_same = known.is_some_and(|pod| {
                *pod.node == *node
                    && pod.references.len() == references.len()
                    && pod
                        .references
                        .iter()
                        .zip(references.clone())
                        .all(|((kind, name), new)| (*kind, &**name) == new)
            });
            if is_same {
                return false;
            }
        }
        let mut edges = self.0.write();
        edges.remove_pod(namespace, name);
        let namespace = key_of(&edges.pods, namespace);
        let node: Arc<str> = node.into();
        let mut connected = Vec::with_capacity(references.len());
        for (kind, name) in references {
            let names = edges.referred.entry(kind).or_default().entry(namespace.clone()).or_default();
            let name = key_of(names, name);
            *names.entry(name.clone()).or_default().entry(node.clone()).or_default() += 1;
            connected.push((kind, name));
        }
        let pod = Pod { node, references: connected.into() };
        edges.pods.entry(namespace).or_default().insert(name.into(), pod);
        true
    }

    /// Whether a pod is assigned to another node.
    pub(super) fn is_elsewhere(&self, namespace: &str, name: &str, node: &str) -> bool {
        let edges = self.0.read();
        let known = edges.pods.get(namespace).and_then(|names| names.get(name));
        known.is_some_and(|pod| *pod.node != *node)
    }

    /// Removes a pod that is deleted or not assigned; returns whether the graph changed.
    pub(super) fn remove_pod(&self, namespace: &str, name: &str) -> bool {
        // Most added pods are not assigned yet.
        if !self.0.read().pods.get(namespace).is_some_and(|names| names.contains_key(name)) {
            return false;
        }
        self.0.write().remove_pod(namespace, name)
    }

    /// Adds or replaces a bound volume and the secrets it needs.
    pub(super) fn set_volume(&self, name: &str, claim: (&str, &str), secrets: &[(&str, &str)]) {
        let mut edges = self.0.write();
        edges.remove_volume(name);
        let name: Arc<str> = name.into();
        let mut connected = Vec::with_capacity(secrets.len());
        for (namespace, secret) in secrets {
            let namespace = key_of(&edges.volumes_of_secrets, namespace);
            let names = edges.volumes_of_secrets.entry(namespace.clone()).or_default();
            let secret = key_of(names, secret);
            names.entry(secret.clone()).or_default().insert(name.clone());
            connected.push((namespace, secret));
        }
        let volume = Volume { claim: (claim.0.into(), claim.1.into()), secrets: connected.into() };
        edges.volumes.insert(name, volume);
    }

    /// Removes a volume that is deleted or not bound.
    pub(super) fn remove_volume(&self, name: &str) -> bool {
        self.0.write().remove_volume(name)
    }

    /// Adds or replaces an attachment or slice of a node.
    pub(super) fn set_of_node(&self, owned: Owned, name: &str, node: &str) {
        self.0.write().owned(owned).insert(name.into(), node.into());
    }

    /// Removes an attachment or slice that is deleted or has no node.
    pub(super) fn remove_of_node(&self, owned: Owned, name: &str) -> bool {
        self.0.write().owned(owned).remove(name).is_some()
    }

    /// Namespaces and names of all pods in the graph.
    pub(super) fn pods(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let edges = self.0.read();
        let pods = edges.pods.iter();
        pods.flat_map(|(namespace, names)| names.keys().map(|name| (namespace.clone(), name.clone())))
            .collect()
    }

    /// The names of all volumes in the graph.
    pub(super) fn volumes(&self) -> Vec<Arc<str>> {
        self.0.read().volumes.keys().cloned().collect()
    }

    /// The names of all attachments or slices in the graph.
    pub(super) fn of_node(&self, owned: Owned) -> Vec<Arc<str>> {
        self.0.write().owned(owned).keys().cloned().collect()
    }
}

/// Objects that belong to a node directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owned {
    VolumeAttachment,
    ResourceSlice,
    PodCertificateRequest,
}

impl Owned {
    /// The key of an object: its name, with its namespace if it has one.
    pub(super) fn key<'a>(self, namespace: &str, name: &'a str) -> Cow<'a, str> {
        match self {
            Owned::VolumeAttachment | Owned::ResourceSlice => name.into(),
            Owned::PodCertificateRequest => format!("{namespace}/{name}").into(),
        }
    }
}

impl Edges {
    fn refers(&self, kind: Kind, namespace: &str, name: &str, node: &str) -> bool {
        let names = self.referred.get(&kind).and_then(|namespaces| namespaces.get(namespace));
        names.and_then(|names| names.get(name)).is_some_and(|nodes| nodes.contains_key(node))
    }

    fn volume_reaches(&self, volume: &str, node: &str) -> bool {
        self.volumes.get(volume).is_some_and(|Volume { claim: (namespace, claim), .. }| {
            self.refers(Kind::PersistentVolumeClaim, namespace, claim, node)
        })
    }

    fn owned(&mut self, owned: Owned) -> &mut ByName<Arc<str>> {
        match owned {
            Owned::VolumeAttachment => &mut self.attachments,
            Owned::ResourceSlice => &mut self.slices,
            Owned::PodCertificateRequest => &mut self.certificate_requests,
        }
    }

    fn remove_pod(&mut self, namespace: &str, name: &str) -> bool {
        let Some(pod) = remove(&mut self.pods, namespace, name) else { return false };
        for (kind, referred) in &pod.references {
            let Some(namespaces) = self.referred.get_mut(kind) else { continue };
            let Some(nodes) = namespaces.get_mut(namespace).and_then(|names| names.get_mut(referred)) else {
                continue;
            };
            if let Some(count) = nodes.get_mut(&pod.node) {
                *count -= 1;
                if *count == 0 {
                    nodes.remove(&pod.node);
                }
            }
            if nodes.is_empty() {
                remove(namespaces, namespace, referred);
            }
        }
        true
    }

    fn remove_volume(&mut self, name: &str) -> bool {
        let Some(volume) = self.volumes.remove(name) else { return false };
        for (namespace, secret) in &volume.secrets {
            let names = self.volumes_of_secrets.get_mut(namespace);
            let Some(volumes) = names.and_then(|names| names.get_mut(secret)) else { continue };
            volumes.remove(name);
            if volumes.is_empty() {
                remove(&mut self.volumes_of_secrets, namespace, secret);
            }
        }
        true
    }
}

/// The shared text of an existing key, or a new one.
fn key_of<T>(map: &ByName<T>, text: &str) -> Arc<str> {
    map.get_key_value(text).map_or_else(|| text.into(), |(key, _)| key.clone())
}

/// Removes an entry, and its namespace with the last one.
fn remove<T>(map: &mut ByNamespace<T>, namespace: &str, name: &str) -> Option<T> {
    let names = map.get_mut(namespace)?;
    let removed = names.remove(name);
    if names.is_empty() {
        map.remove(namespace);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(graph: &Graph, name: &str, node: &str, references: &[(Kind, &'static str)]) -> bool {
        graph.set_pod("shop", name, node, references.iter().copied())
    }

    #[test]
    fn pods_connect_nodes_with_what_they_refer_to() {
        let graph = Graph::default();
        let secret = Vertex::Referred(Kind::Secret, "shop", "s");
        assert!(set(&graph, "p", "n", &[(Kind::Secret, "s")]));
        assert!(!set(&graph, "p", "n", &[(Kind::Secret, "s")]), "nothing is new");
        assert!(graph.has_path(secret, "n") && graph.has_path(Vertex::Pod("shop", "p"), "n"));
        assert!(!graph.has_path(secret, "m") && !graph.has_path(Vertex::Pod("shop", "p"), "m"));
        assert!(!graph.has_path(Vertex::Referred(Kind::ConfigMap, "shop", "s"), "n"));
        assert!(!graph.has_path(Vertex::Referred(Kind::Secret, "other", "s"), "n"));
        // The connection lasts as long as one of the node's pods refers to the secret.
        assert!(set(&graph, "q", "n", &[(Kind::Secret, "s")]));
        assert!(graph.remove_pod("shop", "p"));
        assert!(graph.has_path(secret, "n"));
        assert!(set(&graph, "q", "m", &[(Kind::Secret, "s")]));
        assert!(!graph.has_path(secret, "n") && graph.has_path(secret, "m"));
        assert!(graph.remove_pod("shop", "q"));
        assert!(!graph.has_path(secret, "m"));
    }

    #[test]
    fn volumes_connect_secrets_with_the_nodes_of_their_claim() {
        let graph = Graph::default();
        let (volume, secret) = (Vertex::PersistentVolume("v"), Vertex::Referred(Kind::Secret, "vault", "s"));
        graph.set_volume("v", ("shop", "claim"), &[("vault", "s")]);
        assert!(!graph.has_path(volume, "n"));
        set(&graph, "p", "n", &[(Kind::PersistentVolumeClaim, "claim")]);
        assert!(graph.has_path(volume, "n") && graph.has_path(secret, "n"));
        assert!(!graph.has_path(secret, "m"));
        graph.set_volume("v", ("shop", "claim"), &[]);
        assert!(graph.has_path(volume, "n") && !graph.has_path(secret, "n"));
        graph.set_volume("v", ("shop", "another"), &[("vault", "s")]);
        assert!(!graph.has_path(volume, "n"));
        graph.remove_volume("v");
        assert!(graph.volumes().is_empty());
    }

    #[test]
    fn some_things_are_a_nodes_of_themselves() {
        let graph = Graph::default();
        graph.set_of_node(Owned::VolumeAttachment, "a", "n");
        graph.set_of_node(Owned::ResourceSlice, "a", "m");
        assert!(graph.has_path(Vertex::VolumeAttachment("a"), "n"));
        assert!(!graph.has_path(Vertex::ResourceSlice("a"), "n"));
        assert!(graph.remove_of_node(Owned::VolumeAttachment, "a"));
        assert!(!graph.has_path(Vertex::VolumeAttachment("a"), "n"));
    }

    proptest! {
        /// After any steps, the readable objects follow from the existing pods, and nothing remains of removed ones.
        #[test]
        fn the_graph_is_what_its_pods_say(
            steps in prop::collection::vec((0usize..4, 0usize..3, prop::collection::btree_set(0usize..4, 0..4)), 0..40)
        ) {
            const SECRETS: [&str; 4] = ["a", "b", "c", "d"];
            let graph = Graph::default();
            let mut model: HashMap<usize, (usize, Vec<usize>)> = HashMap::new();
            for (pod, node, secrets) in steps {
                // The third node stands for no node.
                if node == 2 {
                    graph.remove_pod("ns", &pod.to_string());
                    model.remove(&pod);
                } else {
                    let references: Vec<_> = secrets.iter().map(|secret| (Kind::Secret, SECRETS[*secret])).collect();
                    graph.set_pod("ns", &pod.to_string(), &node.to_string(), references.iter().copied());
                    model.insert(pod, (node, secrets.into_iter().collect()));
                }
                for node in 0..2 {
                    for (position, secret) in SECRETS.iter().enumerate() {
                        let expected = model.values().any(|(own, secrets)| *own == node && secrets.contains(&position));
                        let vertex = Vertex::Referred(Kind::Secret, "ns", secret);
                        prop_assert_eq!(graph.has_path(vertex, &node.to_string()), expected);
                    }
                }
            }
            for pod in model.keys() {
                graph.remove_pod("ns", &pod.to_string());
            }
            let edges = graph.0.read();
            prop_assert!(edges.pods.is_empty());
            prop_assert!(edges.referred.values().all(HashMap::is_empty));
        }
    }
}
