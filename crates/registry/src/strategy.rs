//! What is particular to a kind when its objects are written.

use crate::{BoxFuture, DeleteOptions, Registry, RequestContext};
use pintle_machinery::{
    ErrorList, FieldPath, Status, Value,
    validation::{validate_object_meta, validate_object_meta_update},
};
use std::time::Duration;

/// How a write that had side effects ends: called once with whether the object was stored, and the server's other
/// objects to keep or take back what was done to them.
pub type FinishFn = Box<dyn for<'a> FnOnce(bool, &'a dyn Registry) -> BoxFuture<'a, ()> + Send>;

/// The rules of one kind (or of one subresource of it), called by the registry store in the order of the methods
/// here. Defaults do nothing, which is right for a kind without rules of its own.
///
/// Objects are trees in the storage version, with absent fields absent: after decoding, a field that Go would leave out
/// as empty is not there; `null` counts as absent.
///
/// The rules come from <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>
/// and the reference's observed behaviour.
pub trait Strategy: Send + Sync {
    /// Fills in what a client left out, on everything that is decoded: requests, and objects read from storage that an
    /// older server wrote. The schema's own defaults have been applied before. Must be idempotent.
    fn set_defaults(&self, _object: &mut Value) {}

    /// Brings an object into the shape that its schema wants, beyond what decoding by the schema does: only schemas made
    /// at run time have more to say. Called before [`Strategy::set_defaults`] on what a client sent (then with
    /// `is_request`) and on what was stored or converted. Returns the paths of fields that it did not know and took out.
    ///
    /// # Errors
    /// The `Status` for a client that sent what cannot be; what was stored is made to fit instead.
    fn coerce(&self, _object: &mut Value, _is_request: bool) -> Result<Vec<String>, Status> {
        Ok(Vec::new())
    }

    /// Brings a stored object that another server or an older one wrote to the form in which it is shown. Called after
    /// [`Strategy::set_defaults`], and not on requests, which may say what is never shown. Must be idempotent.
    fn default_on_read(&self, _object: &mut Value) {}

    /// What a user needs to write this very object, besides the verb: called first of all on create, without the name that
    /// is generated for it, and on update with the new object; `old` is what is there, also nothing on an update that
    /// creates. `None` is nothing.
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

    /// Brings a new object into the shape every new object has: status cleared, generation 1, dropped fields of
    /// disabled features.
    fn prepare_for_create(&self, _context: &RequestContext<'_>, _object: &mut Value) {}

    /// The dotted paths of the fields that a write under this strategy leaves as they are, and whose writer so does not
    /// own them: with most kinds that have one, the status of the object itself, and the spec of its status.
    fn reset_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is wrong with a new object, its metadata first, then the fields in the order they are declared. A kind
    /// without rules of its own has the rules of metadata.
    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let name = |name: &str, prefix| self.validate_name(name, prefix);
        validate_object_meta(object, !context.namespace.is_empty(), name, &FieldPath::new("metadata"))
    }

    /// What the client should know of a new object that is accepted all the same.
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

    /// Takes back what this write may not change, and sets what follows from what it changed (generation).
    fn prepare_for_update(&self, _context: &RequestContext<'_>, _object: &mut Value, _old: &Value) {}

    /// What is wrong with the new state of an object, its metadata first (the store checks it too, and clients see both).
    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_object_meta_update(object, old, &FieldPath::new("metadata"))
    }

    /// As [`Strategy::validate_update`], which it calls unless a kind's validation has something to say also of what it
    /// lets pass: the client is told, whether the update is accepted or not.
    fn check_update(
        &self,
        context: &RequestContext<'_>,
        object: &Value,
        old: &Value,
        _warnings: &mut Vec<String>,
    ) -> ErrorList {
        self.validate_update(context, object, old)
    }

    /// What the client should know of an update that is accepted all the same.
    fn warnings_on_update(
        &self,
        _context: &RequestContext<'_>,
        _object: &Value,
        _old: &Value,
    ) -> Vec<String> {
        Vec::new()
    }

    /// The last touch after validation, before the object is stored; must not change its meaning.
    fn canonicalize(&self, _object: &mut Value) {}

    /// Whether a PUT of a name that does not exist creates it.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT may leave out the resourceVersion.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Whether the kind ends in two steps. Called when a delete was asked for; `requested` is the client's grace
    /// period. Returns the grace period to use, or `None` for a kind that is deleted at once. A pod without a node, say,
    /// answers `Some(0)`.
    fn graceful_deletion(
        &self,
        _context: &RequestContext<'_>,
        _object: &Value,
        _requested: Option<i64>,
    ) -> Option<i64> {
        None
    }

    /// The last touch to an object that begins to end and is stored once more because something still holds it, such
    /// as a namespace's phase.
    fn prepare_for_deletion(&self, _object: &mut Value) {}

    /// How long the object is kept after this write; `None` is for ever.
    fn ttl(&self, _object: &Value) -> Option<Duration> {
        None
    }

    /// Whether the kind's dependents are orphaned when the client names no propagation policy.
    fn orphan_dependents_by_default(&self) -> bool {
        false
    }

    /// What the client should know of a delete, also of many at once, that is done as asked.
    fn warnings_on_delete(&self, _options: &DeleteOptions) -> Vec<String> {
        Vec::new()
    }

    /// Whether an object of this kind is freed with its finalizers in the spec (namespaces): `false` keeps the object
    /// terminating when the last metadata finalizer goes.
    fn may_be_removed(&self, _object: &Value) -> bool {
        true
    }

    /// Whether the answer to a delete is the deleted object instead of a `Status`.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Side effects after the object is gone.
    fn after_delete<'a>(&'a self, _context: &'a RequestContext<'a>, _object: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What is wrong with a name of this kind (`prefix` when it will get a generated suffix). A DNS subdomain unless
    /// the kind says otherwise.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        pintle_machinery::validation::name_is_dns_subdomain(name, prefix)
    }
}

/// The strategy of a kind without rules of its own.
#[derive(Debug, Default, Clone, Copy)]
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}
