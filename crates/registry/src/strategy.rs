//! Defines [`Strategy`], the rules of one kind for writes.

use crate::{BoxFuture, DeleteOptions, Registry, RequestContext};
use pintle_machinery::{
    ErrorList, FieldPath, Status, Value,
    validation::{validate_object_meta, validate_object_meta_update},
};
use std::time::Duration;

/// Completes or reverts the side effects of a write. Called once, with whether the object was stored and with the
/// registry of the server's other objects.
pub type FinishFn = Box<dyn for<'a> FnOnce(bool, &'a dyn Registry) -> BoxFuture<'a, ()> + Send>;

/// The rules of one kind (or of one subresource of it), called by the registry store in the order of the methods
/// in this trait. The default implementations do nothing, which is right for a kind without rules of its own.
///
/// Objects are trees in the storage version, with absent fields absent: after decoding, a field that Go would leave out
/// as empty is not there; `null` counts as absent.
///
/// The rules come from <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>
/// and the reference's observed behaviour.
pub trait Strategy: Send + Sync {
    /// Defaults fields of every decoded object: of requests, and of stored objects that an older server wrote. The
    /// defaults of the built-in schema have been applied before; those of [`crate::Resource::own_schema`] have not. Must
    /// be idempotent.
    fn set_defaults(&self, _object: &mut Value) {}

    /// The dotted paths of the lists and maps that get a default only where a request's body lacks them. An empty one of a
    /// body stays empty for admission, managed fields and validation; the default appears once the object is stored, which
    /// omits what is empty.
    fn defaults_of_absent(&self) -> &'static [&'static str] {
        &[]
    }

    /// Brings an object into the shape that its schema requires, beyond decoding by the schema: schemas built at run time
    /// need this, and annotations that are fields in other versions. Called before [`Strategy::set_defaults`] on request bodies (with `is_request`) and on stored
    /// or converted objects. Returns the paths of unknown fields, which it has removed.
    ///
    /// # Errors
    /// The `Status` for a client whose object cannot be brought into the shape. For stored objects the faulty parts are
    /// removed instead.
    fn coerce(&self, _object: &mut Value, _is_request: bool) -> Result<Vec<String>, Status> {
        Ok(Vec::new())
    }

    /// Brings a stored object that another or an older server wrote into the form that clients read. Called after
    /// [`Strategy::set_defaults`] on stored objects only: request bodies may contain fields that are never returned.
    /// Must be idempotent.
    fn default_on_read(&self, _object: &mut Value) {}

    /// Authorizes the user for this particular object, beyond the verb. Called first: on create before a name is
    /// generated, and on update with the new object. `old` is the stored object, `None` on create and on an update that
    /// creates. `None` as result means that nothing more is required.
    ///
    /// The future's error is the `Status` that the client gets.
    fn authorize_write<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        _object: &'a Value,
        _old: Option<&'a Value>,
    ) -> Option<BoxFuture<'a, Result<(), Status>>> {
        None
    }

    /// Side effects that an object needs before it may be stored, such as allocating an address. Called on create
    /// after system metadata is filled in and before [`Strategy::prepare_for_create`].
    fn begin_create<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        _object: &'a mut Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Prepares a new object: clears the status, sets generation 1, drops fields of disabled features.
    fn prepare_for_create(&self, _context: &RequestContext<'_>, _object: &mut Value) {}

    /// Warnings for a new object that apply even when validation rejects it. Called before
    /// [`Strategy::prepare_for_create`], which may change what they are about.
    fn preparation_warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// The dotted paths of the fields that a write under this strategy does not change and whose ownership it does not
    /// record: for most kinds with a status, the status on writes to the object, and the spec on writes to its status.
    fn reset_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Validates a new object: metadata first, then the fields in declared order. The default validates metadata only.
    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let name = |name: &str, prefix| self.validate_name(name, prefix);
        validate_object_meta(object, !context.namespace.is_empty(), name, &FieldPath::new("metadata"))
    }

    /// Checks fields that need the authorizer or other objects. `errors` are those of validation, without those that the
    /// store finds in the metadata; the check may add its own before or after them. Called after validation, whether it
    /// found errors or not, on create (`old` is `None`) and on update. `None` as result means that there is nothing to
    /// check.
    fn review<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        _object: &'a Value,
        _old: Option<&'a Value>,
        _errors: &'a mut ErrorList,
    ) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// Warnings for a new object that is accepted.
    fn warnings_on_create(&self, _context: &RequestContext<'_>, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// As [`Strategy::begin_create`], for updates.
    fn begin_update<'a>(
        &'a self,
        _context: &'a RequestContext<'a>,
        _object: &'a mut Value,
        _old: &'a Value,
    ) -> BoxFuture<'a, Result<Option<FinishFn>, Status>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Reverts the fields that this write may not change, and sets fields that depend on the changes (generation).
    fn prepare_for_update(&self, _context: &RequestContext<'_>, _object: &mut Value, _old: &Value) {}

    /// Validates the new state of an object, metadata first (the store checks metadata too, and clients see both
    /// errors).
    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_object_meta_update(object, old, &FieldPath::new("metadata"))
    }

    /// Validates an update and may add warnings, which the client receives whether the update is accepted or not. The
    /// default calls [`Strategy::validate_update`].
    fn check_update(
        &self,
        context: &RequestContext<'_>,
        object: &Value,
        old: &Value,
        _warnings: &mut Vec<String>,
    ) -> ErrorList {
        self.validate_update(context, object, old)
    }

    /// Warnings for an update that is accepted.
    fn warnings_on_update(
        &self,
        _context: &RequestContext<'_>,
        _object: &Value,
        _old: &Value,
    ) -> Vec<String> {
        Vec::new()
    }

    /// Normalizes the object after validation, before it is stored; must not change its meaning.
    fn canonicalize(&self, _object: &mut Value) {}

    /// Removes the fields that storage does not keep and that admission may have added. The default removes none: decoding
    /// by the schema leaves no unknown field.
    fn prune(&self, _object: &mut Value) {}

    /// Create-on-update: whether a PUT of a name that does not exist creates the object.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT without resourceVersion is accepted.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Returns the grace period in seconds for a delete, or `None` for a kind that is deleted at once. `requested` is
    /// the client's grace period. For example, a pod without a node returns `Some(0)`.
    fn graceful_deletion(
        &self,
        _context: &RequestContext<'_>,
        _object: &Value,
        _requested: Option<i64>,
    ) -> Option<i64> {
        None
    }

    /// Changes an object whose deletion begins with its status
    /// ([`begins_deletion_with_status`](Strategy::begins_deletion_with_status)), such as a namespace's phase.
    fn prepare_for_deletion(&self, _object: &mut Value) {}

    /// How long the object is kept after this write; `None` keeps it without limit.
    fn ttl(&self, _object: &Value) -> Option<Duration> {
        None
    }

    /// The part that the garbage collector has in a delete.
    fn garbage_collection_policy(&self) -> GarbageCollectionPolicy {
        GarbageCollectionPolicy::DeleteDependents
    }

    /// Refuses to delete an object by its name alone, whatever is stored. A delete of a collection does not ask.
    ///
    /// # Errors
    /// The reason, which becomes a 403.
    fn check_delete(&self, _name: &str) -> Result<(), &'static str> {
        Ok(())
    }

    /// Warnings for a delete or delete collection that is accepted.
    fn warnings_on_delete(&self, _options: &DeleteOptions) -> Vec<String> {
        Vec::new()
    }

    /// Whether the object may be removed when its last metadata finalizer is gone. `false` keeps it terminating, as for
    /// namespaces with finalizers in the spec.
    fn may_be_removed(&self, _object: &Value) -> bool {
        true
    }

    /// Whether a deletion begins with a change of the object's status, whose preconditions are those of the delete: a
    /// delete is then refused as that change is. The delete only begins the deletion, even if nothing keeps the object.
    fn begins_deletion_with_status(&self) -> bool {
        false
    }

    /// The finalizers of the garbage collector that the beginning of such a deletion sets.
    fn first_propagation(&self) -> FirstPropagation {
        FirstPropagation::ForegroundUnlessOrphaned
    }

    /// Whether the answer to a delete is the deleted object instead of a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Whether OpenAPI documents tell of the deleted object as the answer to a delete.
    fn documents_deleted_object(&self) -> bool {
        self.returns_deleted_object()
    }

    /// Side effects after the object is gone.
    fn after_delete<'a>(&'a self, _context: &'a RequestContext<'a>, _object: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the reasons why a name of this kind is invalid (`prefix` when a generated suffix will follow). The
    /// default requires a DNS subdomain.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        pintle_machinery::validation::name_is_dns_subdomain(name, prefix)
    }
}

/// The part that the garbage collector has in the deletes of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GarbageCollectionPolicy {
    /// The dependents are deleted when the client names no propagation policy.
    DeleteDependents,
    /// The dependents are orphaned when the client names no propagation policy.
    OrphanDependents,
    /// The collector ignores the kind, and would never remove its finalizers: propagation policies have no effect.
    Unsupported,
}

/// The part that the propagation policy has in the beginning of a deletion that begins with the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPropagation {
    /// That of other deletes, but dependents that are not to be orphaned (`orphanDependents: false`) are waited for.
    ForegroundUnlessOrphaned,
    /// None: only a later delete sets the finalizers.
    Ignored,
}

/// The strategy of a kind without rules of its own.
#[derive(Debug, Default, Clone, Copy)]
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}
