//! Feeds the graph from the watch caches.

use super::{
    graph::{Graph, Owned},
    references::{OfNode, PersistentVolume, Pod},
};
use crate::metrics::NodeMetrics;
use parking_lot::Mutex;
use pintle_cacher::{CachedObject, Cacher, WatchItem, Watcher};
use pintle_controller::{Delta, ListWatch, Names, keep_watching};
use pintle_storage::Key;
use pintle_supervisor::Supervisor;
use std::{
    collections::HashMap,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle};

/// The watch caches that the graph is built from; `None` for a resource that is not served.
#[derive(Default)]
pub struct NodeSources {
    /// Pods.
    pub pods: Option<Arc<Cacher>>,
    /// `persistentvolumes`.
    pub persistent_volumes: Option<Arc<Cacher>>,
    /// `volumeattachments.storage.k8s.io`.
    pub volume_attachments: Option<Arc<Cacher>>,
    /// `resourceslices.resource.k8s.io`.
    pub resource_slices: Option<Arc<Cacher>>,
    /// `podcertificaterequests.certificates.k8s.io`.
    pub pod_certificate_requests: Option<Arc<Cacher>>,
}

/// The resource of a populator.
#[derive(Debug, Clone, Copy)]
enum Source {
    Pods {
        /// The index of `spec.nodeName` among the selectable fields.
        node_name: usize,
    },
    PersistentVolumes,
    Owned(Owned),
}

/// The maximum of events in one batch.
const BATCH: usize = 64;
/// How often events are taken while there are some and no query takes them.
const PERIOD: Duration = Duration::from_millis(100);

impl NodeSources {
    /// A populator of the graph for each source.
    pub(super) fn populators(self, graph: &Arc<Graph>, metrics: &Arc<NodeMetrics>) -> Vec<Arc<Populator>> {
        let pods = self.pods.and_then(|pods| {
            let node_name = pods.trigger_index("spec.nodeName");
            if node_name.is_none() {
                tracing::error!("the node authorizer cannot tell pods by their nodes");
            }
            Some((pods, Source::Pods { node_name: node_name? }))
        });
        let others = [
            (self.persistent_volumes, Source::PersistentVolumes),
            (self.volume_attachments, Source::Owned(Owned::VolumeAttachment)),
            (self.resource_slices, Source::Owned(Owned::ResourceSlice)),
            (self.pod_certificate_requests, Source::Owned(Owned::PodCertificateRequest)),
        ];
        let others = others.into_iter().filter_map(|(cacher, source)| Some((cacher?, source)));
        let populators = pods.into_iter().chain(others).map(|(cacher, source)| {
            let (graph, metrics) = (graph.clone(), metrics.clone());
            let (synced, following) = (watch::Sender::new(false), Mutex::default());
            Arc::new(Populator { cacher, source, graph, metrics, synced, following })
        });
        populators.collect()
    }
}

/// Feeds the graph from one source. Events are taken in batches, and a query of the graph first takes all available
/// ones: there are many writes, of which few affect the graph, and few queries.
pub(super) struct Populator {
    cacher: Arc<Cacher>,
    source: Source,
    graph: Arc<Graph>,
    metrics: Arc<NodeMetrics>,
    synced: watch::Sender<bool>,
    following: Mutex<Following>,
}

/// Changed pods by node.
type Unread = HashMap<Arc<str>, HashMap<Key, Arc<CachedObject>>>;

#[derive(Default)]
struct Following {
    /// `None` between two watches.
    watcher: Option<(Watcher, ListWatch)>,
    items: Vec<WatchItem>,
    /// Assigned pods that have changed since they were last parsed, by node: they are parsed when the node makes a
    /// request.
    unread: Unread,
    /// The waker of the populator's task, if it waits for events.
    waker: Option<Waker>,
}

impl Populator {
    /// Becomes true when all objects that existed at the start are in the graph.
    pub(super) fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Applies all available events that affect a node.
    pub(super) fn catch_up(&self, node: &str) {
        let mut following = self.following.lock();
        let waker = following.waker.clone();
        self.take_ready(&mut following, waker.as_ref().unwrap_or(Waker::noop()));
        if let (None, Some(waker)) = (&following.watcher, waker) {
            waker.wake();
        }
        for pod in following.unread.remove(node).unwrap_or_default().values() {
            self.read(pod);
        }
    }

    /// Starts the task that follows the source until `stopping` becomes true.
    pub(super) fn spawn(
        self: &Arc<Self>,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> JoinHandle<()> {
        let part = format!("node-graph/{}", self.cacher.config().resource);
        let (populator, stopping) = (self.clone(), stopping.clone());
        supervisor.spawn_restarting(part, move || populator.clone().run(stopping.clone()))
    }

    /// Runs until the server stops.
    async fn run(self: Arc<Self>, stopping: watch::Receiver<bool>) {
        keep_watching(stopping, || self.watch_once()).await;
        // Release the watch and its buffers.
        *self.following.lock() = Following::default();
    }

    async fn watch_once(&self) {
        let Ok(watcher) = self.cacher.watch(ListWatch::options()).await else { return };
        {
            let mut following = self.following.lock();
            following.unread.clear();
            following.watcher = Some((watcher, ListWatch::begin()));
        }
        while poll_fn(|context| self.poll(context)).await {
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Takes available events, or waits for one. `false` when the watch has ended.
    fn poll(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut following = self.following.lock();
        let has_some = self.take_ready(&mut following, context.waker());
        let goes_on = following.watcher.is_some();
        match has_some || !goes_on {
            true => {
                following.waker = None;
                Poll::Ready(goes_on)
            }
            false => {
                following.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Takes all available events, and returns whether there were any. The next one wakes the waker.
    fn take_ready(&self, following: &mut Following, waker: &Waker) -> bool {
        let mut has_some = false;
        let mut context = Context::from_waker(waker);
        let Following { watcher, items, unread, .. } = following;
        while let Some((watching, watch)) = watcher {
            match watching.poll_batch(&mut context, BATCH, items) {
                Poll::Ready(0) => *watcher = None,
                Poll::Ready(_) => {
                    has_some = true;
                    for item in items.drain(..) {
                        watch.accept(&item, &mut |delta| self.apply(&delta, unread));
                    }
                }
                Poll::Pending if watching.is_behind() => {}
                Poll::Pending => break,
            }
        }
        has_some
    }

    fn apply(&self, delta: &Delta<'_>, unread: &mut Unread) {
        match (delta, self.source) {
            (Delta::Set(pod), Source::Pods { node_name }) => self.set_unread(pod, node_name, unread),
            (Delta::Removed(pod), Source::Pods { node_name }) => self.remove_unread(pod, node_name, unread),
            (Delta::Set(object), _) => self.read(object),
            (Delta::Removed(object), _) => self.remove(object.namespace(), object.name()),
            (Delta::Listed(there), _) => {
                self.keep(there);
                self.synced.send_replace(true);
            }
        }
    }

    /// Keeps an assigned pod until its node makes a request. A pod of the same name on another node, whose deletion was
    /// missed, is removed.
    fn set_unread(&self, pod: &Arc<CachedObject>, node_name: usize, unread: &mut Unread) {
        let (namespace, name) = (pod.namespace(), pod.name());
        match node_of(pod, node_name) {
            Some(node) => {
                if self.graph.is_elsewhere(namespace, name, node) {
                    self.remove(namespace, name);
                }
                unread.entry(node.clone()).or_default().insert(pod.key().clone(), pod.clone());
            }
            None => self.remove_unassigned(namespace, name),
        }
    }

    fn remove_unread(&self, pod: &CachedObject, node_name: usize, unread: &mut Unread) {
        let (namespace, name) = (pod.namespace(), pod.name());
        let Some(node) = node_of(pod, node_name) else { return self.remove_unassigned(namespace, name) };
        if let Some(of_node) = unread.get_mut(node) {
            of_node.remove(pod.key());
            if of_node.is_empty() {
                unread.remove(node);
            }
        }
        self.remove(namespace, name);
    }

    /// Removes the assigned pod of the same name whose deletion may have been missed. It is no action of the graph that
    /// metrics count.
    fn remove_unassigned(&self, namespace: &str, name: &str) {
        self.graph.remove_pod(namespace, name);
    }

    /// Adds the present state of an object to the graph.
    fn read(&self, object: &CachedObject) {
        let (namespace, name) = (object.namespace(), object.name());
        let outcome = match self.source {
            Source::Pods { .. } => Pod::read(&object.json()).map(|pod| self.set_pod(namespace, name, &pod)),
            Source::PersistentVolumes => {
                PersistentVolume::read(&object.json()).map(|volume| match volume.claim() {
                    Some(claim) => {
                        self.metrics.timed("AddPV", || self.graph.set_volume(name, claim, &volume.secrets()))
                    }
                    None => {
                        self.metrics.timed("AddPV", || self.graph.remove_volume(name));
                    }
                })
            }
            Source::Owned(owned) => OfNode::read(&object.json()).map(|object| {
                let key = owned.key(namespace, name);
                self.metrics.timed(owned.adding(), || match object.node_name() {
                    "" => {
                        self.graph.remove_of_node(owned, &key);
                    }
                    node => self.graph.set_of_node(owned, &key, node),
                });
            }),
        };
        if let Err(error) = outcome {
            // An object that cannot be parsed gives no access.
            self.remove(namespace, name);
            tracing::error!(namespace, name, %error, "an object is no part of the node authorizer's graph");
        }
    }

    fn set_pod(&self, namespace: &str, name: &str, pod: &Pod<'_>) {
        if pod.node_name().is_empty() {
            return self.remove_unassigned(namespace, name);
        }
        let references = pod.references();
        let references = references.iter().map(|(kind, name)| (*kind, &**name));
        self.metrics.timed("AddPod", || self.graph.set_pod(namespace, name, pod.node_name(), references));
    }

    fn remove(&self, namespace: &str, name: &str) {
        match self.source {
            Source::Pods { .. } => self.metrics.timed("DeletePod", || self.graph.remove_pod(namespace, name)),
            Source::PersistentVolumes => self.metrics.timed("DeletePV", || self.graph.remove_volume(name)),
            Source::Owned(owned) => {
                let key = owned.key(namespace, name);
                self.metrics.timed(owned.deleting(), || self.graph.remove_of_node(owned, &key))
            }
        };
    }

    /// Removes all objects but these.
    fn keep(&self, there: &Names) {
        let known: Vec<(Arc<str>, Arc<str>)> = match self.source {
            Source::Pods { .. } => self.graph.pods(),
            Source::PersistentVolumes => without_namespace(self.graph.volumes()),
            Source::Owned(owned) => self.graph.of_node(owned).iter().map(|key| split(key)).collect(),
        };
        for (namespace, name) in known {
            if !there.contains(&namespace, &name) {
                self.remove(&namespace, &name);
            }
        }
    }
}

/// The node that a pod is assigned to.
fn node_of(pod: &CachedObject, node_name: usize) -> Option<&Arc<str>> {
    pod.fields().get(node_name).filter(|node| !node.is_empty())
}

/// The namespace and the name of a key.
fn split(key: &str) -> (Arc<str>, Arc<str>) {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    (namespace.into(), name.into())
}

fn without_namespace(names: Vec<Arc<str>>) -> Vec<(Arc<str>, Arc<str>)> {
    let none: Arc<str> = "".into();
    names.into_iter().map(|name| (none.clone(), name)).collect()
}

impl Owned {
    /// The operation label for an addition.
    fn adding(self) -> &'static str {
        match self {
            Owned::VolumeAttachment => "AddVolumeAttachment",
            Owned::ResourceSlice => "AddResourceSlice",
            Owned::PodCertificateRequest => "AddPodCertificateRequest",
        }
    }

    /// The operation label for a deletion.
    fn deleting(self) -> &'static str {
        match self {
            Owned::VolumeAttachment => "DeleteVolumeAttachment",
            Owned::ResourceSlice => "DeleteResourceSlice",
            Owned::PodCertificateRequest => "DeletePodCertificateRequest",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{graph::Vertex, references::Kind};
    use bytes::Bytes;
    use pintle_cacher::{CacherConfig, DecodeError, DecodedObject, Labels, ObjectDecoder, Selectable};
    use pintle_storage::{MemoryStorage, Payload, Revision};

    /// A decoder for a cache that is never read.
    struct NoObjects;

    impl ObjectDecoder for NoObjects {
        fn decode(&self, _: &Key, _: &Payload, _: Revision) -> Result<DecodedObject, DecodeError> {
            Err(DecodeError("nothing is stored".to_owned()))
        }

        fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
            json.clone()
        }
    }

    /// A pod on a node with a secret.
    fn pod(node: &str, secret: &str) -> Arc<CachedObject> {
        let spec = pintle_machinery::json!({
            "nodeName": node, "volumes": [{"name": "v", "secret": {"secretName": secret}}]
        });
        let json = pintle_machinery::json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec});
        let decoded = DecodedObject {
            json: Bytes::from(json.to_string()),
            packed: None,
            namespace: "shop".into(),
            name: "p".into(),
            selectable: Arc::new(Selectable {
                labels: Labels::default(),
                fields: [node.into()].into(),
                exact: None,
            }),
        };
        Arc::new(CachedObject::new(Key::new("/registry/pods/shop/p"), Revision(2), decoded))
    }

    #[tokio::test]
    async fn a_pod_that_comes_back_elsewhere_unseen_gives_its_former_node_nothing() {
        let config = CacherConfig::new("pods", "/registry/pods/", Arc::new(NoObjects));
        let populator = Populator {
            cacher: Cacher::start(
                Arc::new(MemoryStorage::new()),
                config,
                &pintle_supervisor::Supervisor::current(),
            ),
            source: Source::Pods { node_name: 0 },
            graph: Arc::default(),
            metrics: crate::AuthorizationMetrics::new("me").unwrap().node().clone(),
            synced: watch::Sender::new(false),
            following: Mutex::default(),
        };
        let hear = |pod: &Arc<CachedObject>| {
            populator.apply(&Delta::Set(pod), &mut populator.following.lock().unread);
        };
        let may = |node: &str, secret: &str| {
            populator.catch_up(node);
            populator.graph.has_path(Vertex::Referred(Kind::Secret, "shop", secret), node)
        };
        hear(&pod("n", "s"));
        assert!(may("n", "s"));
        assert!(!may("o", "s"));
        // The deletion of the old pod was not reported.
        hear(&pod("o", "t"));
        assert!(!may("n", "s"), "before the other node asks for anything");
        assert!(may("o", "t"));
        assert!(!may("n", "t"));
        assert_eq!(populator.metrics.graph_actions("DeletePod"), 1);
        // Pods without a node are not in the graph.
        hear(&pod("", "t"));
        let mut unread = Unread::default();
        populator.apply(&Delta::Removed(&pod("", "t")), &mut unread);
        assert!(!may("o", "t"));
        assert_eq!(populator.metrics.graph_actions("DeletePod"), 1);
    }
}
