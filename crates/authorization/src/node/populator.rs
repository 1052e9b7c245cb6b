//! Feeds the graph from the caches of what it is made of.

use super::{
    NodeAuthorizer,
    graph::Owned,
    references::{OfNode, PersistentVolume, Pod},
};
use pintle_cacher::{CachedObject, Cacher, EventType, Freshness, WatchItem, WatchOptions, WatchStart};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

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
    Pods,
    PersistentVolumes,
    Owned(Owned),
}

/// How many events are taken at once.
const BATCH: usize = 64;
/// How long is waited before watching again.
const PAUSE: Duration = Duration::from_millis(100);

impl NodeAuthorizer {
    /// Follows pods, volumes, attachments and slices until `stopping` turns true. Call it once.
    pub fn follow(
        self: &Arc<Self>,
        sources: NodeSources,
        runtime: &Handle,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<()>> {
        let sources = [
            (sources.pods, Source::Pods),
            (sources.persistent_volumes, Source::PersistentVolumes),
            (sources.volume_attachments, Source::Owned(Owned::VolumeAttachment)),
            (sources.resource_slices, Source::Owned(Owned::ResourceSlice)),
        ];
        let (mut tasks, mut all_synced) = (Vec::new(), Vec::new());
        for (cacher, source) in sources {
            let Some(cacher) = cacher else { continue };
            let (synced, receiver) = watch::channel(false);
            all_synced.push(receiver);
            let populator = Populator { cacher, source, authorizer: self.clone(), synced };
            tasks.push(runtime.spawn(populator.run(stopping.clone())));
        }
        if self.synced.set(all_synced).is_err() {
            tracing::error!("the node authorizer follows its sources already");
        }
        tasks
    }
}

struct Populator {
    cacher: Arc<Cacher>,
    source: Source,
    authorizer: Arc<NodeAuthorizer>,
    synced: watch::Sender<bool>,
}

impl Populator {
    /// Runs until the server stops.
    async fn run(self, mut stopping: watch::Receiver<bool>) {
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
    }

    async fn watch_once(&self) {
        let start = WatchStart::InitialEvents(Freshness::Any);
        let options = WatchOptions { bookmarks: true, ..WatchOptions::new(start) };
        let Ok(mut watcher) = self.cacher.watch(options).await else { return };
        let mut initial = Some(HashSet::new());
        let mut items = Vec::new();
        while watcher.next_batch(BATCH, &mut items).await {
            for item in items.drain(..) {
                match &item {
                    WatchItem::Event { event_type, event } => {
                        let Some(object) = event.object(*event_type) else { continue };
                        if let Some(seen) = &mut initial {
                            seen.insert((object.namespace().to_owned(), object.name().to_owned()));
                        }
                        match event_type {
                            EventType::Deleted => self.remove(object.namespace(), object.name()),
                            _ => self.set(object),
                        }
                    }
                    WatchItem::Bookmark { initial_events_end: true, .. } => {
                        // What went while nobody was looking.
                        if let Some(seen) = initial.take() {
                            self.keep(&seen);
                            self.synced.send_replace(true);
                        }
                    }
                    WatchItem::Bookmark { .. } => {}
                }
            }
        }
    }

    fn set(&self, object: &CachedObject) {
        let (namespace, name) = (object.namespace(), object.name());
        let outcome = match self.source {
            Source::Pods => Pod::read(object.json()).map(|pod| self.set_pod(namespace, name, &pod)),
            Source::PersistentVolumes => {
                PersistentVolume::read(object.json()).map(|volume| match volume.claim() {
                    Some(claim) => self
                        .authorizer
                        .metrics
                        .timed("AddPV", || self.authorizer.graph.set_volume(name, claim, &volume.secrets())),
                    None => self.remove(namespace, name),
                })
            }
            Source::Owned(owned) => OfNode::read(object.json()).map(|object| match object.node_name() {
                "" => self.remove(namespace, name),
                node => self
                    .authorizer
                    .metrics
                    .timed(owned.adding(), || self.authorizer.graph.set_of_node(owned, name, node)),
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
            self.authorizer.graph.remove_pod(namespace, name);
            return;
        }
        let references = pod.references();
        let references = references.iter().map(|(kind, name)| (*kind, &**name));
        self.authorizer
            .metrics
            .timed("AddPod", || self.authorizer.graph.set_pod(namespace, name, pod.node_name(), references));
    }

    fn remove(&self, namespace: &str, name: &str) {
        match self.source {
            Source::Pods => self
                .authorizer
                .metrics
                .timed("DeletePod", || self.authorizer.graph.remove_pod(namespace, name)),
            Source::PersistentVolumes => {
                self.authorizer.metrics.timed("DeletePV", || self.authorizer.graph.remove_volume(name))
            }
            Source::Owned(owned) => self
                .authorizer
                .metrics
                .timed(owned.deleting(), || self.authorizer.graph.remove_of_node(owned, name)),
        };
    }

    /// Removes all but these.
    fn keep(&self, seen: &HashSet<(String, String)>) {
        let known: Vec<(Arc<str>, Arc<str>)> = match self.source {
            Source::Pods => self.authorizer.graph.pods(),
            Source::PersistentVolumes => without_namespace(self.authorizer.graph.volumes()),
            Source::Owned(owned) => without_namespace(self.authorizer.graph.of_node(owned)),
        };
        for (namespace, name) in known {
            if !seen.contains(&(namespace.to_string(), name.to_string())) {
                self.remove(&namespace, &name);
            }
        }
    }
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
