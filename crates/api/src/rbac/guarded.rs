//! The strategies of roles and bindings: the kind's own, with authorization of the write.

use super::escalation::{self, Guard};
use crate::plain::PlainStrategy;
use pintle_machinery::{ErrorList, Status, Value};
use pintle_rbac::Rbac;
use pintle_registry::{BoxFuture, RequestContext, Strategy};
use std::sync::Arc;

/// A kind's strategy with the prevention of privilege escalation.
pub(super) struct Guarded {
    pub(super) rules: PlainStrategy,
    pub(super) guard: Guard,
    pub(super) rbac: Arc<Rbac>,
}

impl Strategy for Guarded {
    fn authorize_write<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        object: &'a Value,
        old: Option<&'a Value>,
    ) -> Option<BoxFuture<'a, Result<(), Status>>> {
        if escalation::is_free(context, object, old) {
            return None;
        }
        Some(Box::pin(self.guard.check(&self.rbac, context, object, old)))
    }

    fn set_defaults(&self, object: &mut Value) {
        self.rules.set_defaults(object);
    }

    fn validate(&self, context: &RequestContext<'_>, object: &Value) -> ErrorList {
        self.rules.validate(context, object)
    }

    fn validate_update(&self, context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        self.rules.validate_update(context, object, old)
    }

    fn allow_create_on_update(&self) -> bool {
        self.rules.allow_create_on_update()
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        self.rules.validate_name(name, prefix)
    }
}
