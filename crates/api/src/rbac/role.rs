//! Roles: permissions in a namespace.

mod validation;

use super::{escalation::Guard, group::GROUP, guarded::Guarded};
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_rbac::Rbac;
use pintle_registry::Resource;
use std::sync::Arc;

/// The declaration of the resource.
pub fn resource(rbac: &Arc<Rbac>) -> Resource {
    GROUP.namespaced("Role", "roles").ruled(Guarded { rules: RULES, guard: Guard::Role, rbac: rbac.clone() })
}

const RULES: PlainStrategy = PlainStrategy::NEW
    .creates_on_update()
    .takes_any_name()
    .checked(validation::validate, validation::validate_update);
