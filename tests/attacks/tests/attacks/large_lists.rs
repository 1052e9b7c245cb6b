//! Attacks with requests of many small entries that the server compares with each other.
//!
//! Each case was quadratic once. For a debug build the bodies have a tenth of their size for a release build.

use crate::Result;
use pintle_attacks::{Bounds, Target, is_release};
use pintle_harness::{Connection, Response};
use serde_json::{Value, json};
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";

/// The number for a release build, a tenth of it for a debug build.
fn scaled(count: usize) -> usize {
    if is_release() { count } else { count / 10 }
}

/// The limits: a debug build needs for a tenth of the work about twice the CPU time of a release build for all of it.
fn bounds() -> Bounds {
    let cpu = if is_release() { Duration::from_secs(1) } else { Duration::from_millis(200) };
    Bounds { cpu, ..Bounds::default() }
}

fn list(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..scaled(count)).map(item).collect()
}

fn map(count: usize, value: &str) -> Value {
    (0..scaled(count))
        .map(|number| (format!("k{number}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn send(
    connection: &mut Connection,
    method: &str,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<Response> {
    connection.request(method, path, &[("content-type", media_type)], body.to_string().as_bytes())
}

#[test]
fn lists_are_looked_through_and_not_compared_item_by_item() -> Result {
    let mut target = Target::start()?;
    let mut master = target.master()?.connect()?;
    let metadata = |name: &str| json!({"name": name});
    let container = json!({"name": "c", "image": "i"});
    send(
        &mut master,
        "POST",
        "/api/v1/namespaces/default/serviceaccounts",
        "application/json",
        &json!({"metadata": metadata("default")}),
    )?;
    let pod = json!({"metadata": metadata("p"), "spec": {"containers": [container]}});
    assert_eq!(send(&mut master, "POST", PODS, "application/json", &pod)?.status, 201);
    let data = json!({"metadata": metadata("a"), "data": map(30_000, "1")});
    assert_eq!(send(&mut master, "POST", MAPS, "application/json", &data)?.status, 201);
    let reference = |number: usize, controller: bool| json!({"apiVersion": "v1", "kind": "A", "name": "n", "uid": number.to_string(), "controller": controller});
    let owned = |controller: bool, count: usize| json!({"metadata": {"name": "o", "ownerReferences": list(count, |number| reference(number, controller))}});
    let manager = |number: usize| {
        json!({"manager": format!("m{number}"), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:k{number}"): {}}}})
    };
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("a"), "data": map(30_000, "3")});
    let pod_with = |field: &str, value: Value| {
        let mut pod = json!({"metadata": metadata("q"), "spec": {"containers": [container]}});
        pod["spec"]["containers"][0][field] = value;
        pod
    };
    let spread =
        |number: usize| json!({"topologyKey": format!("k{number}"), "whenUnsatisfiable": "DoNotSchedule"});
    let dry = |path: &str| format!("{path}?dryRun=All");
    let one = |path: &str, name: &str| format!("{path}/{name}?dryRun=All&fieldManager=attack");
    let rows = [
        ("POST", dry(MAPS), "application/json", owned(false, 20_000)),
        ("POST", dry(MAPS), "application/json", owned(true, 15_000)),
        (
            "POST",
            dry(MAPS),
            "application/json",
            json!({"metadata": {"name": "m", "managedFields": list(7_000, manager)}, "data": map(30_000, "")}),
        ),
        ("PATCH", one(MAPS, "a"), MERGE, json!({"data": map(30_000, "2")})),
        ("PATCH", one(MAPS, "a"), APPLY, applied.clone()),
        ("PATCH", format!("{}&force=true", one(MAPS, "a")), APPLY, applied),
        (
            "PATCH",
            one(MAPS, "a"),
            STRATEGIC,
            json!({"metadata": {
                "finalizers": list(30_000, |number| json!(format!("a.b/{number}"))),
                "$deleteFromPrimitiveList/finalizers": list(60_000, |number| json!(format!("c{number}")))}}),
        ),
        (
            "PATCH",
            one(MAPS, "a"),
            JSON_PATCH,
            list(90_000, |number| match number {
                0 => json!({"op": "add", "path": "/metadata/finalizers", "value": vec![0; scaled(300_000)]}),
                _ => json!({"op": "add", "path": "/metadata/finalizers/0", "value": 0}),
            }),
        ),
        (
            "PATCH",
            one(PODS, "p"),
            STRATEGIC,
            json!({"spec": {"containers": list(25_000, |number| {
                json!({"name": "c", "env": [{"name": format!("e{number}")}]})
            })}}),
        ),
        (
            "POST",
            dry(PODS),
            "application/json",
            pod_with(
                "resources",
                json!({"claims": list(30_000, |number| json!({"name": format!("d{number}")}))}),
            ),
        ),
        (
            "POST",
            dry(PODS),
            "application/json",
            json!({"metadata": metadata("q"), "spec": {
                "containers": [container], "topologySpreadConstraints": list(15_000, spread)}}),
        ),
        (
            "POST",
            dry(PODS),
            "application/json",
            json!({"metadata": metadata("q"), "spec": {"containers": [container], "volumes": [{"name": "v", "configMap": {
                "name": "c", "items": list(40_000, |_| json!({"key": "a", "path": "a"}))}}]}}),
        ),
        (
            "POST",
            dry("/api/v1/nodes"),
            "application/json",
            json!({"metadata": metadata("n"), "spec": {"taints": list(30_000, |number| {
                json!({"key": format!("k{number}"), "effect": "NoSchedule"})
            })}}),
        ),
        (
            "POST",
            dry("/api/v1/namespaces/default/limitranges"),
            "application/json",
            json!({"metadata": metadata("l"), "spec": {"limits": list(50_000, |number| {
                json!({"type": format!("a.b/t{number}")})
            })}}),
        ),
        (
            "POST",
            dry("/api/v1/namespaces/default/services"),
            "application/json",
            json!({"metadata": metadata("s"), "spec": {"type": "NodePort", "ports": list(20_000, |number| {
                json!({"name": format!("p{number}"), "port": number + 1})
            })}}),
        ),
        (
            "POST",
            dry("/apis/storage.k8s.io/v1/storageclasses"),
            "application/json",
            json!({"metadata": metadata("s"), "provisioner": "a.b/c", "allowedTopologies": list(300_000, |_| json!({}))}),
        ),
    ];
    for (number, (method, path, media_type, body)) in rows.iter().enumerate() {
        let what = format!("{number}: {method} {path} {media_type}");
        let ((), cost) = target.attack(|server| {
            let mut connection = server.client()?.connect()?;
            send(&mut connection, method, path, media_type, body).map(drop)
        })?;
        cost.assert(&what, &bounds());
    }
    Ok(())
}

#[test]
fn as_many_large_requests_as_there_are_cores_leave_room_for_others() -> Result {
    let mut target = Target::start()?;
    let references = list(150_000, |number| json!({"uid": number.to_string()}));
    let body = json!({"metadata": {"name": "o", "ownerReferences": references}});
    let ((), cost) = target.attack(|server| {
        std::thread::scope(|scope| {
            let requests: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        send(&mut server.client()?.connect()?, "POST", MAPS, "application/json", &body)
                    })
                })
                .collect();
            for request in requests {
                let answer = request.join().unwrap()?;
                assert!(matches!(answer.status, 400 | 422 | 429), "{}", answer.text());
            }
            Result::Ok(())
        })
    })?;
    cost.assert("six large requests at once", &Bounds { cpu: bounds().cpu * 6, ..bounds() });
    Ok(())
}

/// Selectors are evaluated for every change, and not by the writer.
#[test]
fn watches_with_long_selectors_hold_up_no_writer() -> Result {
    let mut target = Target::start()?;
    let names = |count: usize| (0..count).map(|number| format!("v{number}")).collect::<Vec<_>>();
    let selectors = [
        format!("a%20in%20({})", names(9000).join(",")),
        names(4000).iter().map(|name| format!("!{name}")).collect::<Vec<_>>().join(","),
    ];
    let ((), cost) = target.attack(|server| {
        let client = server.client()?;
        let mut watches = Vec::new();
        for number in 0..60 {
            let selector = &selectors[number % selectors.len()];
            watches.push(client.lines(&format!("{MAPS}?watch=1&labelSelector={selector}"))?);
        }
        let mut writer = client.connect()?;
        for number in 0..50 {
            let body = json!({"metadata": {"name": format!("w{number}"), "labels": {"a": "v8999"}}});
            assert_eq!(send(&mut writer, "POST", MAPS, "application/json", &body)?.status, 201);
        }
        // Every watch gets every event.
        for watch in &mut watches {
            for _ in 0..50 {
                assert_eq!(watch.next_json()?.unwrap()["type"], "ADDED");
            }
        }
        Ok(())
    })?;
    let cpu = if is_release() { Duration::from_secs(5) } else { Duration::from_secs(2) };
    cost.assert("watches with long selectors", &Bounds { cpu, ..Bounds::default() });
    Ok(())
}

#[test]
fn refused_objects_with_empty_lists_are_validated_twice_at_most() -> Result {
    let mut target = Target::start()?;
    let mut master = target.master()?.connect()?;
    let account = json!({"metadata": {"name": "default"}});
    send(&mut master, "POST", "/api/v1/namespaces/default/serviceaccounts", "application/json", &account)?;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(send(&mut master, "POST", PODS, "application/json", &pod)?.status, 201);
    let mut other = pod.clone();
    other["spec"]["volumes"] =
        list(20_000, |number| json!({"name": format!("v{number}"), "configMap": {"name": "c", "items": []}}));
    let without_names = json!({"metadata": {"name": "q"}, "spec": {"containers": list(20_000, |_| {
        json!({"name": "", "command": [], "args": [], "env": [], "volumeMounts": []})
    })}});
    let rows = [
        ("a diff with empty lists", "PUT", format!("{PODS}/p?dryRun=All"), other),
        ("errors beside empty lists", "POST", format!("{PODS}?dryRun=All"), without_names),
    ];
    for (what, method, path, body) in rows {
        let (response, cost) = target.attack(|server| {
            let mut connection = server.client()?.connect()?;
            send(&mut connection, method, &path, "application/json", &body)
        })?;
        assert_eq!(response.status, 422, "{what}");
        cost.assert(what, &bounds());
    }
    Ok(())
}
