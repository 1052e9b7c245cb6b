//! Merges the groups that the servers of one cluster serve: peer-aggregated discovery
//! (<https://kubernetes.io/docs/concepts/architecture/mixed-version-proxy/>).
//!
//! Servers of different versions serve different groups, versions and resources. The servers are merged in the order of
//! their identities. Of a resource that several servers describe differently, the verbs and subresources are united, and
//! everything else is that of the first server.

use super::consensus_order::consensus_order;
use pintle_machinery::{Value, ValueExt};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The source of the groups of other servers.
pub trait PeerGroupSource: Send + Sync {
    /// The groups as known at present. Returns the same pointer until there is a change.
    fn current(&self) -> Arc<PeerGroups>;
}

/// The groups of the other servers of a cluster.
#[derive(Debug, Default)]
pub struct PeerGroups {
    /// The identity of this server, which has its place in the order of servers.
    pub own: String,
    /// The `APIGroupDiscovery` documents of each other server, by its identity. No list has a name twice.
    pub peers: BTreeMap<String, Vec<Arc<Value>>>,
}

/// Merges the `APIGroupDiscovery` documents of this server with those of others. `None` when the others add nothing.
pub(super) fn merge(local: &[Value], groups: &PeerGroups) -> Option<Vec<Value>> {
    let mut servers: Vec<(&str, Vec<&Value>)> = groups
        .peers
        .iter()
        .map(|(id, groups)| (id.as_str(), groups.iter().map(|group| &**group).collect()))
        .collect();
    if servers.is_empty() {
        return None;
    }
    servers.push((&groups.own, local.iter().collect()));
    servers.sort_by_key(|(id, _)| *id);
    let own_names: Vec<&str> = local.iter().map(group_name).collect();
    let mut merged: HashMap<&str, Cow<'_, Value>> = HashMap::new();
    let mut lists = Vec::with_capacity(servers.len());
    let mut is_changed = false;
    for (_, groups) in &servers {
        let names: Vec<&str> = groups.iter().map(|group| group_name(group)).collect();
        is_changed |= names != own_names;
        for (name, group) in names.iter().zip(groups) {
            match merged.get_mut(name) {
                None => drop(merged.insert(name, Cow::Borrowed(group))),
                Some(own) => {
                    if let Some(both) = merge_group(own, group) {
                        is_changed = true;
                        *own = Cow::Owned(both);
                    }
                }
            }
        }
        lists.push(names);
    }
    let order = is_changed.then(|| consensus_order(&lists))?;
    Some(order.into_iter().filter_map(|name| merged.remove(name)).map(Cow::into_owned).collect())
}

fn group_name(group: &Value) -> &str {
    group.str_at("metadata.name")
}

/// The union of a group's versions and resources on two servers; `None` when it equals the first one.
fn merge_group(first: &Value, second: &Value) -> Option<Value> {
    merge_items(first, second, "versions", "version", merge_version)
}

fn merge_version(first: &Value, second: &Value) -> Option<Value> {
    merge_items(first, second, "resources", "resource", merge_resource)
}

/// Merges the lists of two objects. Items are identified by the field `key`; `merge` merges items that are in both lists.
/// `None` when the second list adds nothing to the first object.
fn merge_items(
    first: &Value,
    second: &Value,
    list: &str,
    key: &str,
    merge: fn(&Value, &Value) -> Option<Value>,
) -> Option<Value> {
    let (first_items, second_items) = (first.items_at(list), second.items_at(list));
    let names = |items: &'_ [Value]| items.iter().map(|item| item.str_at(key).to_owned()).collect::<Vec<_>>();
    let (first_names, second_names) = (names(first_items), names(second_items));
    let mut merged: HashMap<&str, Cow<'_, Value>> =
        first_names.iter().map(String::as_str).zip(first_items.iter().map(Cow::Borrowed)).collect();
    let mut is_changed = first_names != second_names;
    for (name, item) in second_names.iter().zip(second_items) {
        match merged.get_mut(name.as_str()) {
            None => drop(merged.insert(name, Cow::Borrowed(item))),
            Some(own) => {
                if let Some(both) = merge(own, item) {
                    is_changed = true;
                    *own = Cow::Owned(both);
                }
            }
        }
    }
    if !is_changed {
        return None;
    }
    let lists = [&first_names, &second_names].map(|names| names.iter().map(String::as_str).collect());
    let items = consensus_order(&lists).into_iter().filter_map(|name| merged.remove(name));
    let items: Vec<Value> = items.map(Cow::into_owned).collect();
    let mut object = first.clone();
    object.set(list, items);
    Some(object)
}

fn merge_resource(first: &Value, second: &Value) -> Option<Value> {
    if is_same(first, second) {
        return None;
    }
    let mut resource = first.clone();
    let verbs = [first, second].into_iter().flat_map(|resource| resource.items_at("verbs"));
    let verbs: BTreeSet<&str> = verbs.filter_map(Value::as_str).collect();
    let verbs: Vec<Value> = verbs.into_iter().map(Value::from).collect();
    resource.set("verbs", verbs);
    let both = [first, second].into_iter().flat_map(|resource| resource.items_at("subresources"));
    let subresources: BTreeMap<&str, &Value> = both.map(|own| (own.str_at("subresource"), own)).collect();
    let subresources: Vec<Value> = subresources.into_values().cloned().collect();
    resource.set("subresources", subresources);
    Some(resource)
}

/// Whether two documents say the same. An empty member says as much as a missing one.
fn is_same(first: &Value, second: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    let is_covered = |first: &Value, second: &Value| {
        let Value::Object(members) = first else { return false };
        members.iter().all(|(name, value)| match second.field(name) {
            Some(other) => is_same(value, other),
            None => is_empty(value),
        })
    };
    match (first, second) {
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len()
                && first.iter().zip(second).all(|(first, second)| is_same(first, second))
        }
        (Value::Object(_), Value::Object(_)) => is_covered(first, second) && is_covered(second, first),
        _ => first == second || is_empty(first) && is_empty(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    /// Groups in the notation `group:version=resource,resource;version group`.
    fn groups(text: &str) -> Vec<Value> {
        let resource = |name: &str| json!({"resource": name, "verbs": ["get"], "shortNames": []});
        let version = |text: &str| {
            let (version, resources) = text.split_once('=').unwrap_or((text, ""));
            let resources: Vec<Value> =
                resources.split(',').filter(|name| !name.is_empty()).map(resource).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        };
        let group = |text: &str| {
            let (name, versions) = text.split_once(':').unwrap_or((text, ""));
            let versions: Vec<Value> =
                versions.split(';').filter(|text| !text.is_empty()).map(version).collect();
            json!({"metadata": {"name": name}, "versions": versions})
        };
        text.split_whitespace().map(group).collect()
    }

    fn text(groups: &[Value]) -> String {
        let version = |version: &Value| {
            let resources = version.items_at("resources").iter().map(|own| own.str_at("resource"));
            match resources.collect::<Vec<_>>().join(",") {
                none if none.is_empty() => version.str_at("version").to_owned(),
                resources => format!("{}={resources}", version.str_at("version")),
            }
        };
        let group = |group: &Value| {
            let versions: Vec<String> = group.items_at("versions").iter().map(version).collect();
            format!("{}:{}", group_name(group), versions.join(";"))
        };
        groups.iter().map(group).collect::<Vec<_>>().join(" ")
    }

    fn peers(own: &str, peers: &[(&str, &str)]) -> PeerGroups {
        let documents = |text: &str| groups(text).into_iter().map(Arc::new).collect();
        PeerGroups {
            own: own.to_owned(),
            peers: peers.iter().map(|(id, text)| ((*id).to_owned(), documents(text))).collect(),
        }
    }

    #[test]
    fn servers_are_merged_in_the_order_of_their_identities() {
        let check = |local: &str, others: &[(&str, &str)], expected: Option<&str>| {
            let merged = merge(&groups(local), &peers("m", others));
            assert_eq!(merged.as_deref().map(text).as_deref(), expected, "{local} {others:?}");
        };
        check("a:v1", &[], None);
        check("a:v1=x,y b:v1", &[("z", "a:v1=x,y b:v1")], None);
        check("a:v1", &[("z", "a:v1 c:v1"), ("y", "a:v1")], Some("a:v1 c:v1"));
        check("a:v1 c:v1", &[("z", "a:v1 b:v1 c:v1")], Some("a:v1 b:v1 c:v1"));
        check("a:v1 c:v1", &[("z", "a:v1")], Some("a:v1 c:v1"));
        check("a:v1=x", &[("z", "a:v2=x;v1=x")], Some("a:v2=x;v1=x"));
        check("a:v1=x", &[("z", "a:v1=w,x,y")], Some("a:v1=w,x,y"));
        // The orders contradict each other: that of the lower identity counts.
        check("a:v1 b:v1", &[("z", "b:v1 a:v1")], Some("a:v1 b:v1"));
        check("a:v1 b:v1", &[("a", "b:v1 a:v1")], Some("b:v1 a:v1"));
    }

    #[test]
    fn resources_that_differ_have_the_verbs_and_subresources_of_all_servers() {
        let resource = |verbs: Value, subresources: Value| {
            json!({"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": [
                {"resource": "things", "singularResource": "thing", "verbs": verbs, "subresources": subresources},
            ]}]})
        };
        let subresource = |name: &str, verb: &str| json!({"subresource": name, "verbs": [verb]});
        let local = resource(json!(["list", "get"]), json!([subresource("status", "get")]));
        let peer = resource(
            json!(["watch", "get"]),
            json!([subresource("status", "patch"), subresource("a", "get")]),
        );
        let groups = PeerGroups {
            own: "a".to_owned(),
            peers: BTreeMap::from([("b".to_owned(), vec![Arc::new(peer)])]),
        };
        let merged = merge(&[local], &groups).unwrap();
        let expected = resource(
            json!(["get", "list", "watch"]),
            json!([subresource("a", "get"), subresource("status", "patch")]),
        );
        assert_eq!(merged, [expected]);
    }

    #[test]
    fn what_is_empty_may_be_missing() {
        let check = |first: Value, second: Value, expected: bool| {
            assert_eq!(is_same(&first, &second), expected, "{first} {second}");
            assert_eq!(is_same(&second, &first), expected, "{second} {first}");
        };
        check(json!({"a": [], "b": 1}), json!({"b": 1, "c": ""}), true);
        check(json!({"a": {"x": ""}}), json!({"a": {}}), true);
        check(json!({"a": ["x"]}), json!({}), false);
        check(json!({"a": ["x"]}), json!({"a": ["y"]}), false);
        check(json!({"a": ["x"]}), json!({"a": ["x", "y"]}), false);
        check(json!({"a": 1}), json!({"a": "1"}), false);
    }
}
