//! The strategy of services. Its methods are in the order of a write.

use super::network::ServiceNetwork;
use super::{allocation, change, defaults, families, validation, warnings};
use crate::rules;
use pintle_machinery::{
    ErrorList, GroupResource, Status, Value, ValueExt, meta::ObjectMeta, validation::name_is_dns_label,
};
use pintle_registry::{BoxFuture, DeleteOptions, FinishFn, RequestContext, Strategy};
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct ServiceStrategy {
    pub(super) network: Arc<ServiceNetwork>,
}

impl Strategy for ServiceStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn set_defaults(&self, object: &mut Value) {
        defaults::set_defaults(object);
    }

    fn default_on_read(&self, object: &mut Value) {
        families::complete_stored(&self.network, object);
        // Kube-apiserver stores the policy of these services.
        defaults::drop_needless_traffic_policy(object);
    }

    fn begin_create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a mut Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        Box::pin(async move {
            change::normalize_cluster_ips(object, None);
            allocation::allocate_create(&self.network, context, object).await.map(Some)
        })
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at("status");
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate_create(object)
    }

    fn warnings_on_create(&self, _context: &RequestContext<'_>, object: &Value) -> Vec<String> {
        warnings::warnings(object)
    }

    fn begin_update<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a mut Value,
        old: &'a Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        Box::pin(async move {
            let old = self.completed(old);
            change::patch_allocated_values(object, &old);
            change::normalize_cluster_ips(object, Some(&old));
            allocation::allocate_update(&self.network, context, object, &old).await.map(Some)
        })
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        let old = self.completed(old);
        rules::keep(object, &old, "status");
        change::drop_type_dependent_fields(object, &old);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_update(object, &self.completed(old))
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings::warnings(object)
    }

    fn canonicalize(&self, object: &mut Value) {
        defaults::canonicalize(object);
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn after_delete<'a>(&'a self, context: &'a RequestContext<'a>, object: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if context.dry_run {
                return;
            }
            // The endpoints controller may be slow, and a new service of the name must not start with old endpoints.
            let endpoints = GroupResource::new("", "endpoints");
            let (namespace, name) = (object.namespace(), object.name());
            let _mostly_absent =
                context.registry.delete(&endpoints, namespace, name, DeleteOptions::default()).await;
            allocation::release(&self.network, context, &self.completed(object)).await;
        })
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        name_is_dns_label(name, prefix)
    }
}

impl ServiceStrategy {
    /// The stored object, with the fields that older versions did not store.
    fn completed(&self, old: &Value) -> Value {
        let mut old = old.clone();
        families::complete_stored(&self.network, &mut old);
        old
    }
}

/// The strategy of the `status` subresource.
pub(super) struct ServiceStatusStrategy(pub(super) ServiceStrategy);

impl Strategy for ServiceStatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }

    fn set_defaults(&self, object: &mut Value) {
        self.0.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_status_update(object, old)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        warnings::load_balancer_warnings(object, "status.loadBalancer.ingress")
    }

    fn canonicalize(&self, object: &mut Value) {
        self.0.canonicalize(object);
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    /// A status write can remove the last finalizer, and so complete a deletion.
    fn after_delete<'a>(&'a self, context: &'a RequestContext<'a>, object: &'a Value) -> BoxFuture<'a, ()> {
        self.0.after_delete(context, object)
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        self.0.validate_name(name, prefix)
    }
}
