//! The permissions that changes of a claim's status need beyond `resourceclaims/status`: who binds claims to devices,
//! and who reports the state of a driver's devices (<https://kep.k8s.io/4817>).
//!
//! They are on subresources that exist for authorization only: `resourceclaims/binding` for all claims of the cluster,
//! `resourceclaims/driver` for the claims of a namespace, by the driver's name. The verbs for drivers tell whether the
//! user is a service account on the node of the devices: `associated-node:update`, `arbitrary-node:update`.

use crate::resource::admin_access::{check_namespace, granted};
use pintle_auth::authz::Attributes;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, UserInfo, Value, ValueExt,
    validation::{name_is_dns_subdomain, semantically_equal},
};
use pintle_registry::{BoxFuture, RequestContext};
use pintle_service_account::user;
use std::collections::{BTreeMap, BTreeSet};

const RESOURCE: &str = "resourceclaims";
const BINDING: &str = "binding";
const DRIVER: &str = "driver";
const ASSOCIATED_NODE: &str = "associated-node:";
const ARBITRARY_NODE: &str = "arbitrary-node:";

/// Reviews an update of a claim's status.
pub(super) fn review<'a>(
    context: &'a RequestContext<'a>,
    claim: &'a Value,
    old: &'a Value,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    let admin_access = if granted(old).is_none() { granted(claim) } else { None };
    let is_granular = enabled(Gate::DRAResourceClaimGranularStatusAuthorization);
    let binds = is_granular
        && ["status.allocation", "status.reservedFor"].into_iter().any(|field| differs(claim, old, field));
    // Deallocation drops the data of drivers.
    let drivers = match claim.at("status.allocation") {
        Some(_) if is_granular && enabled(Gate::DRAResourceClaimDeviceStatus) => changed_drivers(claim, old),
        _ => BTreeSet::new(),
    };
    if admin_access.is_none() && !binds && drivers.is_empty() {
        return None;
    }
    Some(Box::pin(async move {
        let mut found = ErrorList::new();
        if let Some(path) = admin_access {
            found.extend(check_namespace(context, path).await.err());
        }
        if binds {
            found.extend(authorize_binding(context).await.err());
        }
        let verbs = driver_verbs(context, claim);
        for driver in drivers {
            found.extend(authorize_driver(context, &verbs, driver).await.err());
        }
        errors.splice(0..0, found);
    }))
}

fn differs(claim: &Value, old: &Value, field: &str) -> bool {
    let of = |claim: &Value| claim.at(field).cloned().unwrap_or(Value::Null);
    !semantically_equal(&of(claim), &of(old))
}

/// The drivers of devices whose data is added, changed or removed.
fn changed_drivers<'a>(claim: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    let key = |device: &'a Value| ["driver", "pool", "device", "shareID"].map(|field| device.str_at(field));
    let mut stored: BTreeMap<[&str; 4], &Value> =
        old.items_at("status.devices").iter().map(|device| (key(device), device)).collect();
    let mut drivers = BTreeSet::new();
    for device in claim.items_at("status.devices") {
        let unchanged = stored.remove(&key(device)).is_some_and(|stored| semantically_equal(stored, device));
        if !unchanged {
            drivers.insert(device.str_at("driver"));
        }
    }
    drivers.extend(stored.values().map(|device| device.str_at("driver")));
    drivers
}

async fn authorize_binding(context: &RequestContext<'_>) -> Result<(), FieldError> {
    let attributes = Attributes { subresource: BINDING, ..attributes(context, context.verb) };
    authorize(context, &attributes).await.map_err(|why| {
        let detail = format!(
            "changing status.allocation or status.reservedFor requires resource=\"{RESOURCE}/{BINDING}\", \
             verb=\"{}\" permission: {why}",
            context.verb
        );
        FieldError::forbidden(&FieldPath::new("status").child("allocation"), detail)
    })
}

/// Authorizes changes of a driver's devices: one of the verbs suffices.
async fn authorize_driver(
    context: &RequestContext<'_>,
    verbs: &[String],
    driver: &str,
) -> Result<(), FieldError> {
    let mut refusal = None;
    for verb in verbs {
        let attributes = Attributes {
            subresource: DRIVER,
            namespace: context.namespace,
            name: driver,
            ..attributes(context, verb)
        };
        match authorize(context, &attributes).await {
            Ok(()) => return Ok(()),
            Err(why) => refusal = refusal.or(Some(why)),
        }
    }
    let detail = format!(
        "changing status.devices requires resource=\"{RESOURCE}/{DRIVER}\", verb=\"[{}]\" permission: {}",
        verbs.join(" "),
        refusal.unwrap_or_default()
    );
    Err(FieldError::forbidden(&FieldPath::new("status").child("devices"), detail))
}

fn attributes<'a>(context: &'a RequestContext<'_>, verb: &'a str) -> Attributes<'a> {
    Attributes {
        group: &context.group_version.group,
        version: &context.group_version.version,
        resource: RESOURCE,
        ..Attributes::of(context.user, verb)
    }
}

/// # Errors
/// The message of the refusal.
async fn authorize(context: &RequestContext<'_>, attributes: &Attributes<'_>) -> Result<(), String> {
    let verdict = context.authorizer.authorize(attributes).await;
    match verdict.is_allowed() {
        true => Ok(()),
        false => Err(attributes.forbidden(&verdict.explanation()).message),
    }
}

/// The verbs of which the user needs one, the least powerful first.
fn driver_verbs(context: &RequestContext<'_>, claim: &Value) -> Vec<String> {
    let mut verbs = vec![format!("{ARBITRARY_NODE}{}", context.verb)];
    let is_associated = allocated_node(claim).is_some_and(|node| node_of(context.user) == Some(node));
    if is_associated {
        verbs.insert(0, format!("{ASSOCIATED_NODE}{}", context.verb));
    }
    verbs
}

/// The node of the allocated devices, if they are local to one.
fn allocated_node(claim: &Value) -> Option<&str> {
    let [term] = claim.items_at("status.allocation.nodeSelector.nodeSelectorTerms") else { return None };
    let ([], [field]) = (term.items_at("matchExpressions"), term.items_at("matchFields")) else {
        return None;
    };
    let [Value::String(node)] = field.items_at("values") else { return None };
    let is_name = field.str_at("key") == "metadata.name" && field.str_at("operator") == "In";
    (is_name && !node.is_empty()).then_some(node)
}

/// The node that a service account's token is bound to.
fn node_of(user: &UserInfo) -> Option<&str> {
    user::split_username(&user.name)?;
    match user.extra.get(user::NODE_NAME)?.as_slice() {
        [node] if name_is_dns_subdomain(node, false).is_empty() => Some(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authz::{Authorizer, Decision, Verdict};
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, now, with_context};

    /// Allows the listed permissions: verb, subresource, namespace, name.
    struct Permissions(&'static [(&'static str, &'static str, &'static str, &'static str)]);

    impl Authorizer for Permissions {
        fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> pintle_auth::BoxFuture<'a, Verdict> {
            let wanted = (attributes.verb, attributes.subresource, attributes.namespace, attributes.name);
            let has = self.0.contains(&wanted);
            Box::pin(std::future::ready(Verdict::new(if has {
                Decision::Allow
            } else {
                Decision::NoOpinion
            })))
        }
    }

    const NODE: &str = "node-1";

    fn messages(permissions: &Permissions, user: &UserInfo, claim: &Value, old: &Value) -> Vec<String> {
        with_context(&MemoryRegistry::default(), "n", false, |context| {
            let context = RequestContext { user, authorizer: permissions, verb: "patch", ..*context };
            let mut errors = ErrorList::new();
            if let Some(review) = review(&context, claim, old, &mut errors) {
                now(review);
            }
            errors.iter().map(ToString::to_string).collect()
        })
    }

    fn claim(devices: &Value) -> Value {
        json!({"status": {
            "allocation": {
                "devices": {"results": [{"driver": "d"}]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": [NODE]},
                ]}]},
            },
            "devices": devices,
        }})
    }

    #[test]
    fn binding_needs_a_permission_for_all_claims() {
        let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
        let (free, bound) = (json!({}), claim(&json!([])));
        let expected = "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires \
                        resource=\"resourceclaims/binding\", verb=\"patch\" permission: resourceclaims is forbidden: User \
                        \"jane\" cannot patch resource \"resourceclaims/binding\" in API group \"\" at the cluster scope";
        assert_eq!(messages(&Permissions(&[]), &user, &bound, &free), [expected]);
        assert_eq!(
            messages(&Permissions(&[("patch", "binding", "n", "")]), &user, &free, &bound),
            [expected]
        );
        assert!(messages(&Permissions(&[("patch", "binding", "", "")]), &user, &bound, &free).is_empty());
        assert!(messages(&Permissions(&[]), &user, &bound, &bound).is_empty());
    }

    #[test]
    fn data_of_devices_needs_a_permission_for_each_driver() {
        let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
        let old = claim(&json!([{"driver": "a", "data": 1}, {"driver": "b", "data": 1}, {"driver": "c"}]));
        let new = claim(&json!([{"driver": "a", "data": 2}, {"driver": "c"}, {"driver": "d"}]));
        let refused = |permissions| {
            let text = messages(&Permissions(permissions), &user, &new, &old);
            text.iter().map(|text| text.split('"').nth(5).unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(refused(&[]), ["a", "b", "d"]);
        assert_eq!(refused(&[("arbitrary-node:patch", "driver", "n", "b")]), ["a", "d"]);
        assert_eq!(refused(&[("associated-node:patch", "driver", "n", "b")]), ["a", "b", "d"]);
        // Deallocation needs only the permission to bind.
        let free = json!({});
        assert!(messages(&Permissions(&[("patch", "binding", "", "")]), &user, &free, &old).is_empty());
    }

    #[test]
    fn a_service_account_on_the_node_needs_less() {
        let account = |name: &str, node: &str| UserInfo {
            name: name.to_owned(),
            extra: [(user::NODE_NAME.to_owned(), vec![node.to_owned()])].into(),
            ..UserInfo::default()
        };
        let permissions = Permissions(&[("associated-node:patch", "driver", "n", "a")]);
        let (old, new) = (claim(&json!([])), claim(&json!([{"driver": "a"}])));
        for (name, node, allowed) in [
            ("system:serviceaccount:s:driver", NODE, true),
            ("system:serviceaccount:s:driver", "node-2", false),
            ("driver", NODE, false),
        ] {
            assert_eq!(
                messages(&permissions, &account(name, node), &new, &old).is_empty(),
                allowed,
                "{name} {node}"
            );
        }
        let text = messages(&Permissions(&[]), &account("system:serviceaccount:s:driver", NODE), &new, &old);
        assert!(text[0].contains("verb=\"[associated-node:patch arbitrary-node:patch]\""), "{text:?}");
    }
}
