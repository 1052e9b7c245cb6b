//! Objects that plugins read.

use crate::{Lister, Undecoded};
use pintle_machinery::{GroupResource, Status, Value, meta::ObjectMeta, selectors::LabelSelector};
use pintle_registry::{BoxFuture, DeleteOptions, Registry, WriteOptions};
use std::{
    future::{pending, ready},
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Stored objects, with the names of their resources.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    objects: Vec<(String, Value)>,
    /// Whether the cache has none of them yet.
    is_behind: Arc<AtomicBool>,
    /// Whether the cache never catches up.
    is_stuck: bool,
}

impl Objects {
    /// These objects, each with the name of its resource.
    pub fn new<'a>(objects: impl IntoIterator<Item = (&'a str, Value)>) -> Objects {
        let objects = objects.into_iter().map(|(resource, object)| (resource.to_owned(), object)).collect();
        Objects { objects, is_behind: Arc::default(), is_stuck: false }
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
        let found = self.of(resource, namespace).find(|object| object.name() == name).cloned();
        Box::pin(ready(found.ok_or_else(|| Status::not_found(resource, name))))
    }

    fn visit<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        visit: &'a mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = self.of(resource, namespace).cloned().try_for_each(visit);
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

    /// Returns the changed object without storing it.
    fn update<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
        name: &'a str,
        mut change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
        _: WriteOptions,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move { change(Registry::get(self, resource, namespace, name).await?) })
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
