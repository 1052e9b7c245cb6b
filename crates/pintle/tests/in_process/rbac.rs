//! Tests authorization on a new server: every resource by every verb, for many users, compared with the roles and
//! bindings of a new kube-apiserver. Requests fail after authorization, so that nothing is changed.

mod policy;

use crate::harness::{Server, options};
use pintle::Running;
use pintle_apiserver::base::{body::RequestBody, handler::Handler};
use pintle_machinery::{Value, json};
use policy::{Policy, Wanted};
use std::{collections::BTreeMap, sync::Arc};
use tokio::task::JoinSet;

/// A namespace with role bindings for the users, and one without.
const NAMESPACES: [&str; 2] = ["shop", "other"];

/// Token, name and groups of a user.
struct User {
    token: &'static str,
    name: &'static str,
    groups: &'static [&'static str],
}

const AUTHENTICATED: &str = "system:authenticated";

const USERS: &[User] = &[
    User { token: "", name: "system:anonymous", groups: &["system:unauthenticated"] },
    User { token: "nobody", name: "nobody", groups: &[AUTHENTICATED] },
    User { token: "viewer", name: "viewer", groups: &[AUTHENTICATED] },
    User { token: "editor", name: "editor", groups: &["editors", AUTHENTICATED] },
    User { token: "owner", name: "owner", groups: &[AUTHENTICATED] },
    User { token: "node", name: "system:node:n1", groups: &["system:nodes", AUTHENTICATED] },
    User {
        token: "account",
        name: "system:serviceaccount:kube-system:job-controller",
        groups: &["system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED],
    },
    User { token: "scheduler", name: "system:kube-scheduler", groups: &[AUTHENTICATED] },
];

/// The user-facing roles and their subjects.
const GIVEN: [(&str, &str, &str); 3] =
    [("view", "User", "viewer"), ("edit", "Group", "editors"), ("admin", "User", "owner")];

async fn start() -> (Running, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    let tokens = dir.path().join("tokens.csv");
    let users = USERS.iter().filter(|user| !user.token.is_empty()).map(|user| {
        let groups: Vec<_> = user.groups.iter().filter(|group| **group != AUTHENTICATED).copied().collect();
        format!("{},{},1,\"{}\"\n", user.token, user.name, groups.join(","))
    });
    let users = users.chain(["master,master,1,\"system:masters\"\n".to_owned()]);
    std::fs::write(&tokens, users.collect::<String>()).unwrap();
    options.token_auth_file = Some(tokens);
    (pintle::start(options).await.unwrap(), dir)
}

/// Sends a request to the handler, without the network.
async fn send(
    handler: &Handler,
    token: &str,
    method: &str,
    path: &str,
    body: impl Into<bytes::Bytes>,
) -> (u16, Value) {
    let mut request =
        http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    if !token.is_empty() {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let request = request.body(RequestBody::Bytes(body.into())).unwrap();
    let response = handler.call(request).await;
    let status = response.status().as_u16();
    if status == 200 {
        // A watch does not end.
        return (status, Value::Null);
    }
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

async fn master(handler: &Handler, method: &str, path: &str, body: Value) {
    let (status, answer) = send(handler, "master", method, path, body.to_string()).await;
    assert!(matches!(status, 200 | 201), "{method} {path}: {status} {answer}");
}

async fn get(handler: &Handler, path: &str) -> Value {
    let request = http::Request::builder().uri(path).header("Authorization", "Bearer master");
    let request = request.body(RequestBody::Bytes(bytes::Bytes::new())).unwrap();
    let response = handler.call(request).await;
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Does the work of kube-controller-manager and of an administrator: fills aggregated roles, and binds the user-facing
/// ones.
async fn give_roles(handler: &Handler, policy: &Policy) {
    for namespace in NAMESPACES {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        master(handler, "POST", "/api/v1/namespaces", body).await;
    }
    for (role, kind, name) in GIVEN {
        let path = format!("{GROUP}/clusterroles/{role}");
        let mut object = get(handler, &path).await;
        object["rules"] = policy.rules(role).clone();
        master(handler, "PUT", &path, object).await;
        let subject = json!({"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"});
        let body = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        });
        master(handler, "POST", &format!("{GROUP}/namespaces/shop/rolebindings"), body).await;
    }
    // The last write is the last one to take effect.
    for path in ["/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/secrets"] {
        while send(handler, "owner", "GET", path, "").await.0 == 403 {
            tokio::task::yield_now().await;
        }
    }
}

/// The requests that the node authorizer may allow: those of the nodes' role, and creates of the node's own
/// ResourceSlices.
fn node_might(policy: &Policy, wanted: &Wanted) -> bool {
    let tells_of_devices = wanted.verb == "create" && wanted.resource == "resourceslices";
    policy.role_allows("system:node", wanted) || tells_of_devices
}

/// All served resources, as (group, version, resource or resource/subresource, namespaced).
async fn served(handler: &Handler) -> Vec<(String, String, String, bool)> {
    let mut paths = vec![("".to_owned(), "v1".to_owned(), "/api/v1".to_owned())];
    for group in get(handler, "/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let version_path = format!("/apis/{}", version["groupVersion"].as_str().unwrap());
            let name = |value: &Value| value.as_str().unwrap().to_owned();
            paths.push((name(&group["name"]), name(&version["version"]), version_path));
        }
    }
    let mut served = Vec::new();
    for (group, version, path) in paths {
        for resource in get(handler, &path).await["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap().to_owned();
            served.push((group.clone(), version.clone(), name, resource["namespaced"] == true));
        }
    }
    served
}

/// One request, and its attributes.
struct Case {
    method: &'static str,
    path: String,
    wanted: Wanted,
}

/// The method of each verb; the query makes the request fail after authorization.
const VERBS: [(&str, &str, bool, &str); 8] = [
    ("get", "GET", true, ""),
    ("list", "GET", false, "?limit=none"),
    ("watch", "GET", false, "?watch=true&resourceVersion=none"),
    ("create", "POST", false, "?dryRun=none"),
    ("update", "PUT", true, "?dryRun=none"),
    ("patch", "PATCH", true, "?dryRun=none"),
    ("delete", "DELETE", true, "?dryRun=none"),
    ("deletecollection", "DELETE", false, "?dryRun=none"),
];

fn cases(group: &str, version: &str, resource: &str, namespaced: bool) -> Vec<Case> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let root = match group {
        "" => format!("/api/{version}"),
        _ => format!("/apis/{group}/{version}"),
    };
    let namespaces: &[&str] = if namespaced { &["shop", "other", ""] } else { &[""] };
    let mut cases = Vec::new();
    for namespace in namespaces {
        for (verb, method, named, query) in VERBS {
            let named = named || !subresource.is_empty();
            if !subresource.is_empty() && matches!(verb, "list" | "watch" | "deletecollection") {
                continue;
            }
            // A namespace object is in the namespace of its own name.
            let (name, within) = match (resource, named) {
                ("namespaces", true) => ("shop", "shop"),
                (_, true) => ("missing", *namespace),
                (_, false) => ("", *namespace),
            };
            let mut path = match namespace.is_empty() {
                true => format!("{root}/{resource}"),
                false => format!("{root}/namespaces/{namespace}/{resource}"),
            };
            for part in [name, subresource].into_iter().filter(|part| !part.is_empty()) {
                path = format!("{path}/{part}");
            }
            let wanted = Wanted {
                verb: verb.to_owned(),
                group: group.to_owned(),
                resource: match subresource {
                    "" => resource.to_owned(),
                    _ => format!("{resource}/{subresource}"),
                },
                name: name.to_owned(),
                namespace: within.to_owned(),
                path: String::new(),
            };
            cases.push(Case { method, path: format!("{path}{query}"), wanted });
        }
    }
    cases
}

fn other_paths() -> Vec<Case> {
    let paths = [
        "/",
        "/api",
        "/api/",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/healthz/etcd",
        "/livez",
        "/livez/ping",
        "/readyz",
        "/version",
        "/version/",
        "/metrics",
        "/openapi",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/.well-known/openid-configuration",
        "/logs",
        "/logs/a",
        "/debug/pprof/",
        "/swagger",
        "/other",
    ];
    let methods = [
        ("get", "GET"),
        ("post", "POST"),
        ("put", "PUT"),
        ("patch", "PATCH"),
        ("delete", "DELETE"),
        ("head", "HEAD"),
    ];
    let mut cases = Vec::new();
    for path in paths {
        for (verb, method) in methods {
            let wanted = Wanted { verb: verb.to_owned(), path: path.to_owned(), ..Wanted::default() };
            cases.push(Case { method, path: path.to_owned(), wanted });
        }
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_may_do_what_the_policy_says_and_no_more() {
    let (running, _dir) = start().await;
    let handler = running.handler();
    let mut policy = Policy::of_a_fresh_server();
    for (role, kind, name) in GIVEN {
        policy.bind("shop", role, kind, name);
    }
    give_roles(&handler, &policy).await;
    let policy = Arc::new(policy);
    let mut cases = other_paths();
    for (group, version, resource, namespaced) in served(&handler).await {
        cases.extend(self::cases(&group, &version, &resource, namespaced));
    }
    cases.extend(self::cases("shop.example.com", "v1", "carts", true));
    cases.extend(self::cases("apps", "v1", "carts/items", false));
    let cases = Arc::new(cases);
    let mut tasks = JoinSet::new();
    for user in USERS {
        let (handler, policy, cases) = (handler.clone(), policy.clone(), cases.clone());
        tasks.spawn(async move {
            let (mut allowed, mut wrong) = (0, Vec::new());
            for case in cases.iter() {
                let may = policy.allows(user.name, user.groups, &case.wanted);
                let might = may || user.token == "node" && node_might(&policy, &case.wanted);
                let (status, answer) = send(&handler, user.token, case.method, &case.path, "{").await;
                let was_let = status != 403;
                allowed += usize::from(was_let);
                if may && !was_let || was_let && !might {
                    wrong.push(format!(
                        "{} {} {}: {status} {}",
                        user.name, case.method, case.path, answer["message"]
                    ));
                }
            }
            (user.name, allowed, wrong)
        });
    }
    let mut allowed = BTreeMap::new();
    while let Some(done) = tasks.join_next().await {
        let (name, count, wrong) = done.unwrap();
        assert!(wrong.is_empty(), "{} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
        allowed.insert(name, count);
    }
    // Guards against a test in which all users are alike: a more powerful user has more allowed requests.
    assert!(cases.len() > 1000, "{}", cases.len());
    let order = ["system:anonymous", "nobody", "viewer", "editor", "owner"].map(|name| allowed[name]);
    assert!(order.is_sorted() && order[0] > 0 && order[2] > order[1] && order[4] > order[3], "{allowed:?}");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_in_a_namespace_reach_no_other_one() {
    let (running, _dir) = start().await;
    let handler = running.handler();
    give_roles(&handler, &Policy::of_a_fresh_server()).await;
    // The permissions of the owner of a namespace include those to read it.
    assert_eq!(send(&handler, "owner", "GET", "/api/v1/namespaces/shop", "").await.0, 200);
    let everything = json!({
        "metadata": {"name": "everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    master(&handler, "POST", &format!("{GROUP}/namespaces/shop/rolebindings"), everything).await;
    while send(&handler, "nobody", "GET", "/api/v1/namespaces/shop", "").await.0 == 403 {
        tokio::task::yield_now().await;
    }
    let other = json!({"metadata": {"name": "other"}}).to_string();
    for (method, path, body) in [
        ("GET", "namespaces", ""),
        ("GET", "namespaces?watch=true", ""),
        ("POST", "namespaces", &*other),
        ("GET", "namespaces/default", ""),
        ("PUT", "namespaces/default", ""),
        ("PATCH", "namespaces/default", ""),
        ("DELETE", "namespaces/default", ""),
        ("PUT", "namespaces/default/finalize", ""),
        ("GET", "namespaces/default/status", ""),
        ("PATCH", "namespaces/default/status", ""),
        ("GET", "namespaces/shop", ""),
        ("GET", "nodes", ""),
    ] {
        for token in ["owner", "nobody"] {
            let path = format!("/api/v1/namespaces/shop/{path}");
            let (status, answer) = send(&handler, token, method, &path, body.to_owned()).await;
            assert!(matches!(status, 403 | 404), "{token} {method} {path}: {status} {answer}");
        }
    }
    for path in ["namespaces/default", "namespaces/shop/nodes"] {
        let (status, answer) =
            send(&handler, "nobody", "GET", &format!("/api/v1/watch/namespaces/shop/{path}"), "").await;
        assert_eq!(status, 404, "{answer}");
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_server_has_the_roles_and_bindings_of_kubernetes() {
    let server = Server::start().await;
    for (resource, expected) in policy::objects() {
        let found = server.exchange("GET", &format!("{GROUP}/{resource}"), &[], "").await.json();
        let found = found["items"].as_array().unwrap().iter().map(|object| {
            let mut object = object.clone();
            for member in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
                object["metadata"].as_object_mut().unwrap().remove(member);
            }
            object
        });
        let found: Vec<Value> = found.collect();
        assert_eq!(found, *expected.as_array().unwrap(), "{resource}");
    }
    server.stop().await;
}
