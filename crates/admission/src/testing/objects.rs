//! Objects that plugins read.

use crate::{Lister, Undecoded};
use pintle_machinery::{GroupResource, Status, Value, meta::ObjectMeta, selectors::LabelSelector};
use pintle_registry::{BoxFuture, DeleteOptions, Registry, WriteOptions};
use std::{
    collections::BTreeMap,
    future::{pending, ready},
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The latest state of each updated object, by resource, namespace and name.
type Updates = BTreeMap<[String; 3], Value>;

/// Stored objects, with the names of their resources.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    objects: Vec<(String, Value)>,
    /// The updates, which reads of the registry see and the cache does not.
    updates: Arc<Mutex<Updates>>,
    /// Whether the cache has none of them yet.
    is_behind: Arc<AtomicBool>,
    /// Whether the cache never catches up.
    is_stuck: bool,
}

impl Objects {
    /// These objects, each with the name of its resource.
    pub fn new<'a>(objects: impl IntoIterator<Item = (&'a str, Value)>) -> Objects {
        let objects = objects.into_iter().map(|(resource, object)| (resource.to_owned(), object)).collect();
        Objects { objects, updates: Arc::default(), is_behind: Arc::default(), is_stuck: false }
    }

    /// The objects, which the cache does not have before it catches up.
    pub fn behind(self) -> Objects {
        Objects { is_behind: Arc::new(AtomicBool::new(true)), ..self }
    }

    /// The objects, in a cache that never catches up.
    pub fn stuck(self) -> Objects {
        Objects { is_stuck: true, ..self }
    }

    fn of<'a>(&'a self, resource: &'a GroupResource, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects
            .iter()
            .filter(move |(own, object)| {
                *own == resource.resource && (namespace.is_empty() || object.namespace() == namespace)
            })
            .map(|(_, object)| object)
    }

    /// The objects with their updates.
    fn stored(&self, resource: &GroupResource, namespace: &str) -> Vec<Value> {
        let updates = self.updates();
        let latest = |object: &Value| updates.get(&key(resource, object)).unwrap_or(object).clone();
        self.of(resource, namespace).map(latest).collect()
    }

    fn updates(&self) -> MutexGuard<'_, Updates> {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(resource: &GroupResource, object: &Value) -> [String; 3] {
    [resource.resource.clone(), object.namespace().to_owned(), object.name().to_owned()]
}

/// Pages only: other reads go to the registry.
impl Lister for Objects {
    fn get(&self, _: &GroupResource, _: &str, _: &str) -> Option<Arc<Value>> {
        None
    }

    fn labels(&self, _: &GroupResource, _: &str, _: &str, _: &[&str]) -> Option<Vec<(String, String)>> {
        None
    }

    fn list(&self, _: &GroupResource, _: &str) -> Option<Vec<Arc<Value>>> {
        None
    }

    fn select<'a>(&'a self, _: &GroupResource, _: &str, _: &LabelSelector) -> Option<Vec<Undecoded<'a>>> {
        None
    }

    fn page(
        &self,
        resource: &GroupResource,
        namespace: &str,
        after: &str,
        limit: usize,
    ) -> Option<Vec<Value>> {
        if self.is_behind.load(Ordering::Relaxed) {
            return Some(Vec::new());
        }
        let mut next: Vec<Value> =
            self.of(resource, namespace).filter(|object| object.name() > after).cloned().collect();
        next.sort_by(|one, other| one.name().cmp(other.name()));
        next.truncate(limit);
        Some(next)
    }

    fn catch_up<'a>(&'a self, _: &'a GroupResource) -> BoxFuture<'a, ()> {
        if self.is_stuck {
            return Box::pin(pending());
        }
        self.is_behind.store(false, Ordering::Relaxed);
        Box::pin(ready(()))
    }

    fn count(&self, resource: &GroupResource, namespace: &str, after: &str) -> Option<usize> {
        Some(self.of(resource, namespace).filter(|object| object.name() > after).count())
    }
}

impl Registry for Objects {
    fn get<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let found = self.stored(resource, namespace).into_iter().find(|object| object.name() == name);
        Box::pin(ready(found.ok_or_else(|| Status::not_found(resource, name))))
    }

    fn visit<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        visit: &'a mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = self.stored(resource, namespace).into_iter().try_for_each(visit);
        Box::pin(ready(Ok(())))
    }

    fn create<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: Value,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("plugins neither create nor delete")
    }

    /// Repeats the change when another one came first, as a store does.
    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        mut change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            loop {
                let old = Registry::get(self, resource, namespace, name).await?;
                let new = change(old.clone())?;
                let mut updates = self.updates();
                let key = key(resource, &old);
                if updates.get(&key).is_none_or(|present| *present == old) {
                    updates.insert(key, new.clone());
                    return Ok(new);
                }
            }
        })
    }

    fn apply<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: &'a str,
        _: Value,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("plugins apply nothing")
    }

    fn delete<'a>(
        &'a self,
        _: &'a GroupResource,
        _: &'a str,
        _: &'a str,
        _: DeleteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        unreachable!("plugins neither create nor delete")
    }
}
