//! The roles and bindings that every cluster has
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings>).
//!
//! They are reconciled whenever a server starts: missing parts are added, and additions of users stay. The annotation
//! `rbac.authorization.kubernetes.io/autoupdate` with the value "false" disables this for an object.

mod binding;
mod object;
mod role;

mod bindings;
mod cluster_roles;
mod controller_roles;
mod roles;

mod reconcile;

use crate::objects::unless_off;
use binding::Binding;
use pintle_machinery::Status;
use pintle_registry::Registry;
use role::Role;
use std::{future::Future, pin::Pin};

/// Creates the missing roles and bindings, and adds missing parts to the others. Disabled resources are ignored.
///
/// # Errors
/// The first failure. Objects that were created stay, and a second call creates the rest.
pub async fn bootstrap_roles(registry: &dyn Registry) -> Result<(), Status> {
    unless_off(reconcile(registry)).await
}

async fn reconcile(registry: &dyn Registry) -> Result<(), Status> {
    reconcile::carry_over(registry).await?;
    let roles = cluster_roles::CLUSTER_ROLES.iter().chain(controller_roles::CONTROLLER_ROLES);
    let roles = roles.chain(roles::ROLES).filter(|role| role.is_in_force()).map(Role::object);
    let of_controllers = controller_roles::CONTROLLER_ROLES.iter().filter(|role| role.is_in_force());
    let of_controllers = of_controllers.map(|role| Binding::of_controller(role.name));
    let bindings = bindings::CLUSTER_ROLE_BINDINGS.iter().chain(bindings::ROLE_BINDINGS);
    let bindings =
        bindings.filter(|binding| binding.is_in_force()).map(Binding::object).chain(of_controllers);
    // Concurrent, so that the writes share a group commit.
    let roles = roles.map(|role| -> Reconciliation<'_> { Box::pin(reconcile::role(registry, role)) });
    let bindings =
        bindings.map(|binding| -> Reconciliation<'_> { Box::pin(reconcile::binding(registry, binding)) });
    futures_util::future::try_join_all(roles.chain(bindings)).await.map(drop)
}

type Reconciliation<'a> = Pin<Box<dyn Future<Output = Result<(), Status>> + Send + 'a>>;

#[cfg(test)]
mod tests;
