//! The rules of custom resources, and of their status
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#status-subresource>).

use pintle_machinery::{Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{BoxFuture, FinishFn, RequestContext, Strategy};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// What the strategies of one version share.
#[derive(Clone)]
pub(super) struct Rules {
    /// Whether the status is a subresource.
    pub(super) has_status: bool,
    /// Whether the definition is being deleted.
    pub(super) terminating: Arc<AtomicBool>,
}

/// The rules of whole objects.
pub(super) struct CustomResourceStrategy(pub(super) Rules);

impl Strategy for CustomResourceStrategy {
    fn begin_create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a mut Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        let _ = (context, object);
        Box::pin(std::future::ready(match self.0.terminating.load(Ordering::Acquire) {
            false => Ok(None),
            true => Err(Status::internal_error(
                "create not allowed while custom resource definition is terminating",
            )),
        }))
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        if self.0.has_status {
            object.remove_at("status");
        }
        object.set_generation(1);
    }

    fn reset_fields(&self) -> Option<&'static [&'static str]> {
        Some(if self.0.has_status { &["status"] } else { &[] })
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        if self.0.has_status {
            match old.at("status") {
                Some(status) => object.set("status", status.clone()),
                None => drop(object.remove_at("status")),
            }
        }
        if differs_beside_metadata(object, old) {
            object.set_generation(old.generation().saturating_add(1));
        }
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

/// Whether anything but the metadata differs.
fn differs_beside_metadata(object: &Value, old: &Value) -> bool {
    let (Some(object), Some(old)) = (object.as_object(), old.as_object()) else { return true };
    let without = |(key, _): &(&String, &Value)| key.as_str() != "metadata";
    !object.iter().filter(without).eq(old.iter().filter(without))
}

/// The rules of the status.
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        let mut kept = old.clone();
        match object.remove_at("status") {
            Some(status) => kept.set("status", status),
            None => drop(kept.remove_at("status")),
        }
        for name in ["managedFields", "resourceVersion"] {
            let path = format!("metadata.{name}");
            match object.remove_at(&path) {
                Some(value) => kept.set(&path, value),
                None => drop(kept.remove_at(&path)),
            }
        }
        *object = kept;
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }
}
