//! Prevents privilege escalation: users may grant only their own permissions, unless they may `escalate` or `bind` the
//! role
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>).

use crate::rules;
use pintle_auth::authz::Attributes;
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupResource, Status, StatusReason, Value, ValueExt, meta::ObjectMeta, status::aggregate,
    user::SYSTEM_MASTERS, validation::semantically_equal,
};
use pintle_rbac::{GROUP_NAME, PolicyRule, Rbac, covers};
use pintle_registry::RequestContext;

/// The kind of the written object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

/// Whether a write needs no check: those of `system:masters`, and changes that the garbage collector makes.
pub(super) fn is_free(context: &RequestContext<'_>, object: &Value, old: Option<&Value>) -> bool {
    context.user.is_member_of(SYSTEM_MASTERS) || old.is_some_and(|old| is_for_collector(object, old))
}

/// Whether two states of an object differ at most in fields that the garbage collector writes.
fn is_for_collector(object: &Value, old: &Value) -> bool {
    let [object, old] = [object, old].map(|object| {
        let mut object = object.clone();
        for member in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            object.remove_at(&format!("metadata.{member}"));
        }
        object
    });
    semantically_equal(&object, &old)
}

impl Guard {
    /// Checks that the writer has all permissions that the object grants.
    ///
    /// # Errors
    /// 403 when permissions are missing; the error of a reference to a role without known rules.
    pub(super) async fn check(
        self,
        rbac: &Rbac,
        context: &RequestContext<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        match self {
            Guard::Role | Guard::ClusterRole => self.check_role(rbac, context, object, old).await,
            Guard::RoleBinding | Guard::ClusterRoleBinding => self.check_binding(rbac, context, object).await,
        }
    }

    fn resource(self) -> GroupResource {
        let resource = match self {
            Guard::Role => "roles",
            Guard::ClusterRole => "clusterroles",
            Guard::RoleBinding => "rolebindings",
            Guard::ClusterRoleBinding => "clusterrolebindings",
        };
        GroupResource::new(GROUP_NAME, resource)
    }

    async fn check_role(
        self,
        rbac: &Rbac,
        context: &RequestContext<'_>,
        role: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let resource = self.resource();
        let escalate = Attributes {
            resource: &resource.resource,
            name: context.name,
            namespace: context.namespace,
            ..of_group(context, "escalate")
        };
        if context.authorizer.authorize(&escalate).await.is_allowed() {
            return Ok(());
        }
        rbac.catch_up().await;
        self.check_rules(rbac, context, role, &PolicyRule::of_role(role))?;
        // The future rules of an aggregated role are unknown.
        if aggregates(role) || old.is_some_and(aggregates) {
            let everything = everything();
            if self.check_rules(rbac, context, role, &everything).is_err() {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                return Err(Status::forbidden(&resource, role.name(), why));
            }
        }
        Ok(())
    }

    async fn check_binding(
        self,
        rbac: &Rbac,
        context: &RequestContext<'_>,
        binding: &Value,
    ) -> Result<(), Status> {
        let (kind, name) = (binding.str_at("roleRef.kind"), binding.str_at("roleRef.name"));
        let resource = match kind {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            kind => {
                return Err(Status::unknown(format!("unsupported role reference kind: {}", quote(kind))));
            }
        };
        let group = binding.str_at("roleRef.apiGroup");
        let bind =
            Attributes { group, resource, name, namespace: context.namespace, ..of_group(context, "bind") };
        if context.authorizer.authorize(&bind).await.is_allowed() {
            return Ok(());
        }
        let namespace = if kind == "Role" { context.namespace } else { "" };
        if kind == "Role" && namespace.is_empty() {
            return Err(Status::bad_request("Namespace parameter required."));
        }
        rules::name_parameter(name)?;
        let role = context.registry.get(&GroupResource::new(GROUP_NAME, resource), namespace, name).await;
        let role = role.map_err(|status| match status.reason {
            // The message names the missing role by the resource of the request.
            StatusReason::NotFound => Status::not_found(&self.resource(), name),
            _ => status,
        })?;
        rbac.catch_up().await;
        self.check_rules(rbac, context, binding, &PolicyRule::of_role(&role))
    }

    fn check_rules(
        self,
        rbac: &Rbac,
        context: &RequestContext<'_>,
        object: &Value,
        wanted: &[PolicyRule],
    ) -> Result<(), Status> {
        let index = rbac.index();
        let (own, missing) = index.rules_of(context.user, context.namespace);
        let mut why = match covers::escalation(context.user, &own, wanted) {
            Ok(None) => return Ok(()),
            Ok(Some(why)) => why,
            Err(error) => error.to_string(),
        };
        if !missing.is_empty() {
            let resource = self.resource();
            let errors = missing.iter().map(|role| match &*role.kind {
                "Role" | "ClusterRole" => Status::not_found(&resource, &role.name).message,
                _ => role.to_string(),
            });
            why.push_str(&format!("; resolution errors: [{}]", aggregate(errors)));
        }
        Err(Status::forbidden(&self.resource(), object.name(), &why))
    }
}

fn of_group<'a>(context: &'a RequestContext<'_>, verb: &'a str) -> Attributes<'a> {
    Attributes { group: GROUP_NAME, version: "*", ..Attributes::of(context.user, verb) }
}

fn aggregates(role: &Value) -> bool {
    !role.items_at("aggregationRule.clusterRoleSelectors").is_empty()
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    [
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
    ]
}

#[cfg(test)]
mod tests;
