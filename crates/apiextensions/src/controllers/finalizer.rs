//! Deletes the objects of a terminating definition before the definition itself.

use super::{Context, Controller, condition};
use crate::{definition_view::Definition, informer::Change};
use pintle_apiserver::registry::Stores;
use pintle_cacher::{Freshness, WatchOptions, WatchScope, WatchStart};
use pintle_machinery::{GroupResource, Status, Value, ValueExt};
use pintle_registry::{BoxFuture, DeleteOptions, Registry};
use std::time::Duration;

/// The finalizer that keeps a definition until its objects are deleted.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The time after which the condition reports that the deletion of objects is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause before another watch when one has ended: one that ends again and again must not be repeated without rest.
const WATCH_AGAIN: Duration = Duration::from_millis(100);

pub(crate) struct Finalizer(pub(crate) Context);

/// The progress of the deletion.
struct Outcome {
    status: &'static str,
    reason: &'static str,
    message: String,
    failure: Option<Status>,
}

impl Outcome {
    fn done(reason: &'static str, message: &str) -> Outcome {
        Outcome { status: "False", reason, message: message.to_owned(), failure: None }
    }

    fn failed(reason: &'static str, what: &str, failure: Status) -> Outcome {
        let message = format!("{what}: {}", failure.message);
        Outcome { status: "True", reason, message, failure: Some(failure) }
    }
}

impl Finalizer {
    async fn finalize(&self, definition: &Definition) -> Result<(), Status> {
        let name = definition.metadata.name.as_str();
        let in_progress = condition::Says {
            condition_type: "Terminating",
            status: "True",
            reason: "InstanceDeletionInProgress",
            message: "CustomResource deletion is in progress",
        };
        self.update(name, |definition| condition::set(definition, in_progress)).await?;
        let spec = &definition.spec;
        let resource = GroupResource::new(spec.group.as_str(), spec.names.plural.as_str());
        let outcome = if is_built_in(&resource) {
            Outcome::done(
                "OverlappingBuiltInResource",
                "instances overlap with built-in resources in storage",
            )
        } else if definition.is_true("Established") {
            let accepted = definition.status.accepted_names.plural.as_str();
            self.delete_instances(&GroupResource::new(spec.group.as_str(), accepted)).await
        } else {
            Outcome::done("NeverEstablished", "resource was never established")
        };
        let Outcome { status, reason, message, failure } = outcome;
        let is_done = failure.is_none();
        self.update(name, |definition| {
            let says = condition::Says { condition_type: "Terminating", status, reason, message: &message };
            condition::set(definition, says);
            if is_done
                && let Some(finalizers) =
                    definition.at_mut("metadata.finalizers").and_then(Value::as_array_mut)
            {
                finalizers.retain(|finalizer| finalizer != FINALIZER);
            }
        })
        .await?;
        failure.map_or(Ok(()), Err)
    }

    /// Updates the status of the definition, as long as it is terminating and has the finalizer.
    async fn update(&self, name: &str, mut change: impl FnMut(&mut Value) + Send) -> Result<(), Status> {
        let changed = self.0.update_status(name, |mut definition| {
            let is_due = definition.at("metadata.deletionTimestamp").is_some()
                && definition.items_at("metadata.finalizers").iter().any(|own| own == FINALIZER);
            if is_due {
                change(&mut definition);
            }
            Ok(definition)
        });
        changed.await
    }

    async fn delete_instances(&self, resource: &GroupResource) -> Outcome {
        let store = match self.0.stores.store(resource) {
            Ok(store) => store,
            Err(status) => {
                return Outcome::failed("InstanceDeletionFailed", "could not list instances", status);
            }
        };
        let snapshot = match store.cacher().list(&store.key_prefix(""), Freshness::Consistent).await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let status = Status::internal_error(error);
                return Outcome::failed("InstanceDeletionFailed", "could not list instances", status);
            }
        };
        let mut failure = None;
        for object in snapshot.range(&store.key_prefix(""), None) {
            let (namespace, name) = (object.namespace(), object.name());
            match self.0.stores.delete(resource, namespace, name, DeleteOptions::default()).await {
                Err(status) if status.code != 404 => failure = Some(status),
                _ => {}
            }
        }
        if let Some(status) = failure {
            return Outcome::failed("InstanceDeletionFailed", "could not issue all deletes", status);
        }
        match tokio::time::timeout(PATIENCE, wait_until_empty(&self.0.stores, resource)).await {
            Ok(Ok(())) => Outcome::done("InstanceDeletionCompleted", "removed all instances"),
            Ok(Err(status)) => Outcome::failed(
                "InstanceDeletionCheck",
                "could not confirm zero CustomResources remaining",
                status,
            ),
            Err(_) => Outcome::failed(
                "InstanceDeletionCheck",
                "could not confirm zero CustomResources remaining",
                Status::internal_error("context deadline exceeded"),
            ),
        }
    }
}

/// Waits until no object of the resource exists any more.
async fn wait_until_empty(stores: &Stores, resource: &GroupResource) -> Result<(), Status> {
    let options = WatchOptions {
        start: WatchStart::Now(Freshness::Any),
        scope: WatchScope::All,
        trigger: None,
        predicate: None,
        has_slow_predicate: false,
        bookmarks: false,
        deadline: None,
    };
    loop {
        // A change of the definition replaces the store and ends the watches of the previous one.
        let store = stores.store(resource)?;
        let cacher = store.cacher();
        let mut watcher = cacher.watch(options.clone()).await.map_err(Status::internal_error)?;
        loop {
            let snapshot = cacher.list(&store.key_prefix(""), Freshness::Consistent).await;
            let snapshot = snapshot.map_err(Status::internal_error)?;
            store.require_readable(&snapshot, &store.key_prefix(""))?;
            if snapshot.is_empty() {
                return Ok(());
            }
            let mut items = Vec::new();
            if !watcher.next_batch(64, &mut items).await {
                break;
            }
        }
        tokio::time::sleep(WATCH_AGAIN).await;
    }
}

/// Whether built-in objects are stored under the same prefix.
fn is_built_in(resource: &GroupResource) -> bool {
    matches!(
        (resource.group.as_str(), resource.resource.as_str()),
        ("apiregistration.k8s.io", "apiservices") | ("apiextensions.k8s.io", "customresourcedefinitions")
    )
}

fn waits(definition: &Definition) -> bool {
    definition.is_terminating() && definition.metadata.finalizers.iter().any(|own| own == FINALIZER)
}

impl Controller for Finalizer {
    fn name(&self) -> &'static str {
        "finalizer"
    }

    fn queue_name(&self) -> &'static str {
        "crd_finalizer"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let before = change.before.as_ref().is_some_and(|before| waits(before));
        let now = change.now.as_ref().is_some_and(|now| waits(now));
        (now && !before).then(|| change.name().to_owned()).into_iter().collect()
    }

    fn workers(&self) -> usize {
        5
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match self.0.definitions.get(name).filter(|definition| waits(definition)) {
                Some(definition) => self.finalize(&definition).await,
                None => Ok(()),
            }
        })
    }
}
