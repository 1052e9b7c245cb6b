//! Feeds the graph from the caches of what it is made of.

use super::{
    NodeAuthorizer,
    graph::{Graph, Owned},
    references::{OfNode, PersistentVolume, Pod},
};
use crate::metrics::NodeMetrics;
use parking_lot::Mutex;
use pintle_cacher::{CachedObject, Cacher, FollowedWatch, Heard, Names, WatchItem, Watcher};
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

/// What the graph is made of. A resource that is not served has no part in it.
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
}

/// One of the resources.
#[derive(Debug, Clone, Copy)]
enum Source {
    Pods {
        /// The place of `spec.nodeName` among the selectable fields.
        node_name: usize,
    },
    PersistentVolumes,
    Owned(Owned),
}

/// How many events are taken at once.
const BATCH: usize = 64;
/// How long is waited before watching again.
const PAUSE: Duration = Duration::from_millis(100);
/// How often events are taken while there are some and nobody asks.
const PERIOD: Duration = Duration::from_millis(100);

impl NodeAuthorizer {
    /// Follows pods, volumes, attachments and slices until `stopping` turns true. Call it once.
    pub fn follow(
        self: &Arc<Self>,
        sources: NodeSources,
        supervisor: &Supervisor,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let pods = sources.pods.and_then(|pods| {
            let node_name = pods.trigger_index("spec.nodeName");
            if node_name.is_none() {
                tracing::error!("the node authorizer cannot tell pods by their nodes");
            }
            Some((pods, Source::Pods { node_name: node_name? }))
        });
        let others = [
            (sources.persistent_volumes, Source::PersistentVolumes),
            (sources.volume_attachments, Source::Owned(Owned::VolumeAttachment)),
            (sources.resource_slices, Source::Owned(Owned::ResourceSlice)),
        ];
        let others = others.into_iter().filter_map(|(cacher, source)| Some((cacher?, source)));
        let populators = pods.into_iter().chain(others).map(|(cacher, source)| {
            let (graph, metrics) = (self.graph.clone(), self.metrics.clone());
            let (synced, following) = (watch::Sender::new(false), Mutex::default());
            Arc::new(Populator { cacher, source, graph, metrics, synced, following })
        });
        let populators: Vec<_> = populators.collect();
        let run = |populator: &Arc<Populator>| {
            let part = format!("node-graph/{}", populator.cacher.config().resource);
            let (populator, stopping) = (populator.clone(), stopping.clone());
            supervisor.spawn_restarting(part, move || populator.clone().run(stopping.clone()))
        };
        let tasks = populators.iter().map(run).collect();
        if self.populators.set(populators).is_err() {
            tracing::error!("the node authorizer follows its sources already");
        }
        tasks
    }
}

/// Feeds the graph from one source. Events are taken many at a time, and whoever asks the graph takes those first that are
/// there: there are many writes, few of them matter to the graph, and few questions.
pub(super) struct Populator {
    cacher: Arc<Cacher>,
    source: Source,
    graph: Arc<Graph>,
    metrics: Arc<NodeMetrics>,
    synced: watch::Sender<bool>,
    following: Mutex<Following>,
}

/// Pods by their node.
type Unread = HashMap<Arc<str>, HashMap<Key, Arc<CachedObject>>>;

#[derive(Default)]
struct Following {
    /// `None` between two watches.
    watcher: Option<(Watcher, FollowedWatch)>,
    items: Vec<WatchItem>,
    /// Assigned pods that have changed since they were last read, by their node: they are read when it asks for something.
    unread: Unread,
    /// Whom events wake, if anybody waits for them.
    waker: Option<Waker>,
}

impl Populator {
    /// Whether what was there at the start is known.
    pub(super) fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Takes all events that are there, as far as they matter to a node.
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

    /// Runs until the server stops.
    async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let forever = async {
            loop {
                self.watch_once().await;
                // The watch was cut off, or the cache is not usable: everything is looked at again.
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = forever => {}
            // An error is that nobody is left who could say so.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        // What the watch holds goes with the server.
        *self.following.lock() = Following::default();
    }

    async fn watch_once(&self) {
        let Ok(watcher) = self.cacher.watch(FollowedWatch::options()).await else { return };
        {
            let mut following = self.following.lock();
            following.unread.clear();
            following.watcher = Some((watcher, FollowedWatch::begin()));
        }
        while poll_fn(|context| self.poll(context)).await {
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Takes events, and waits for one if there is none. `false` when the watch is over.
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

    /// Takes all events that are there, and says whether there were any. The next one wakes the waker.
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
                        watch.hear(&item, &mut |heard| self.take(&heard, unread));
                    }
                }
                Poll::Pending if watching.is_behind() => {}
                Poll::Pending => break,
            }
        }
        has_some
    }

    fn take(&self, heard: &Heard<'_>, unread: &mut Unread) {
        match (heard, self.source) {
            (Heard::Set(pod), Source::Pods { node_name }) => self.set_unread(pod, node_name, unread),
            (Heard::Removed(pod), Source::Pods { node_name }) => self.remove_unread(pod, node_name, unread),
            (Heard::Set(object), _) => self.read(object),
            (Heard::Removed(object), _) => self.remove(object.namespace(), object.name()),
            (Heard::Only(there), _) => {
                self.keep(there);
                self.synced.send_replace(true);
            }
        }
    }

    /// Keeps a pod that is assigned until its node asks. It may have the name of another one, on another node, that went
    /// while nobody was looking.
    fn set_unread(&self, pod: &Arc<CachedObject>, node_name: usize, unread: &mut Unread) {
        let (namespace, name) = (pod.namespace(), pod.name());
        match node_of(pod, node_name) {
            Some(node) => {
                if self.graph.is_elsewhere(namespace, name, node) {
                    self.remove(namespace, name);
                }
                unread.entry(node.clone()).or_default().insert(pod.key().clone(), pod.clone());
            }
            None => self.remove(namespace, name),
        }
    }

    fn remove_unread(&self, pod: &CachedObject, node_name: usize, unread: &mut Unread) {
        if let Some(node) = node_of(pod, node_name)
            && let Some(of_node) = unread.get_mut(node)
        {
            of_node.remove(pod.key());
            if of_node.is_empty() {
                unread.remove(node);
            }
        }
        self.remove(pod.namespace(), pod.name());
    }

    /// Makes an object part of the graph, as it is now.
    fn read(&self, object: &CachedObject) {
        let (namespace, name) = (object.namespace(), object.name());
        let outcome = match self.source {
            Source::Pods { .. } => Pod::read(object.json()).map(|pod| self.set_pod(namespace, name, &pod)),
            Source::PersistentVolumes => {
                PersistentVolume::read(object.json()).map(|volume| match volume.claim() {
                    Some(claim) => {
                        self.metrics.timed("AddPV", || self.graph.set_volume(name, claim, &volume.secrets()))
                    }
                    None => self.remove(namespace, name),
                })
            }
            Source::Owned(owned) => OfNode::read(object.json()).map(|object| match object.node_name() {
                "" => self.remove(namespace, name),
                node => self.metrics.timed(owned.adding(), || self.graph.set_of_node(owned, name, node)),
            }),
        };
        if let Err(error) = outcome {
            // Nobody gets access by an object that nobody can read.
            self.remove(namespace, name);
            tracing::error!(namespace, name, %error, "an object is no part of the node authorizer's graph");
        }
    }

    fn set_pod(&self, namespace: &str, name: &str, pod: &Pod<'_>) {
        if pod.node_name().is_empty() {
            // It may have the name of one that went while nobody was looking.
            self.graph.remove_pod(namespace, name);
            return;
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
                self.metrics.timed(owned.deleting(), || self.graph.remove_of_node(owned, name))
            }
        };
    }

    /// Removes all but these.
    fn keep(&self, there: &Names) {
        let known: Vec<(Arc<str>, Arc<str>)> = match self.source {
            Source::Pods { .. } => self.graph.pods(),
            Source::PersistentVolumes => without_namespace(self.graph.volumes()),
            Source::Owned(owned) => without_namespace(self.graph.of_node(owned)),
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

fn without_namespace(names: Vec<Arc<str>>) -> Vec<(Arc<str>, Arc<str>)> {
    let none: Arc<str> = "".into();
    names.into_iter().map(|name| (none.clone(), name)).collect()
}

impl Owned {
    /// What metrics call it when one comes.
    fn adding(self) -> &'static str {
        match self {
            Owned::VolumeAttachment => "AddVolumeAttachment",
            Owned::ResourceSlice => "AddResourceSlice",
        }
    }

    /// What metrics call it when one goes.
    fn deleting(self) -> &'static str {
        match self {
            Owned::VolumeAttachment => "DeleteVolumeAttachment",
            Owned::ResourceSlice => "DeleteResourceSlice",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{graph::Vertex, references::Kind};
    use bytes::Bytes;
    use pintle_cacher::{CacherConfig, DecodeError, DecodedObject, Labels, ObjectDecoder};
    use pintle_storage::{MemoryStorage, Revision};

    /// For a cache of which nothing is asked.
    struct NoObjects;

    impl ObjectDecoder for NoObjects {
        fn decode(&self, _: &Key, _: &Bytes, _: Revision) -> Result<DecodedObject, DecodeError> {
            Err(DecodeError("nothing is stored".to_owned()))
        }

        fn rewrite_revision(&self, json: &Bytes, _: Revision) -> Bytes {
            json.clone()
        }
    }

    /// A pod on a node with a secret.
    fn pod(node: &str, secret: &str) -> Arc<CachedObject> {
        let spec = serde_json::json!({
            "nodeName": node, "volumes": [{"name": "v", "secret": {"secretName": secret}}]
        });
        let json = serde_json::json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec});
        let decoded = DecodedObject {
            json: Bytes::from(json.to_string()),
            namespace: "shop".into(),
            name: "p".into(),
            labels: Labels::default(),
            fields: [node.into()].into(),
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
            populator.take(&Heard::Set(pod), &mut populator.following.lock().unread);
        };
        let may = |node: &str, secret: &str| {
            populator.catch_up(node);
            populator.graph.has_path(Vertex::Referred(Kind::Secret, "shop", secret), node)
        };
        hear(&pod("n", "s"));
        assert!(may("n", "s"));
        assert!(!may("o", "s"));
        // Nobody has told that it went.
        hear(&pod("o", "t"));
        assert!(!may("n", "s"), "before the other node asks for anything");
        assert!(may("o", "t"));
        assert!(!may("n", "t"));
    }
}
