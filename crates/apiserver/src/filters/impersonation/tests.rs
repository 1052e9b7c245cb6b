use super::*;
use http::HeaderMap;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authz::{Decision, Verdict},
};
use std::future::ready;

/// Allows the listed requests, as `verb group/resource/subresource namespace/name`, and records the checks.
struct Allows {
    allowed: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Authorizer for Allows {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        let Attributes { verb, group, resource, subresource, namespace, name, path, .. } = *attributes;
        let question = match attributes.is_resource_request {
            true => format!("{verb} {group}/{resource}/{subresource} {namespace}/{name}"),
            false => format!("{verb} {path}"),
        };
        let is_allowed = self.allowed.contains(&question.as_str());
        self.asked.lock().push(question);
        Box::pin(ready(Verdict::new(if is_allowed { Decision::Allow } else { Decision::NoOpinion })))
    }
}

fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn requestor() -> UserInfo {
    let on_node = ("authentication.kubernetes.io/node-name".to_owned(), vec!["n".to_owned()]);
    UserInfo {
        name: "system:serviceaccount:shop:robot".to_owned(),
        extra: [on_node].into(),
        ..UserInfo::default()
    }
}

/// The outcomes of several impersonated lists of pods by one user, the new user or the refusal, and the checks made.
async fn run(allowed: &[&'static str], requests: &[&[(&'static str, &str)]]) -> (Vec<String>, Vec<String>) {
    run_with(true, allowed, requests).await
}

/// As [`run`], with or without the constrained modes.
async fn run_with(
    is_constrained: bool,
    allowed: &[&'static str],
    requests: &[&[(&'static str, &str)]],
) -> (Vec<String>, Vec<String>) {
    let authorizer = Arc::new(Allows { allowed: allowed.to_vec(), asked: Mutex::default() });
    let filter = Impersonation::new(authorizer.clone(), Arc::new(Metrics::new().unwrap()), is_constrained);
    let mut outcomes = Vec::new();
    for given in requests {
        let mut request = Request::new(crate::base::body::RequestBody::Bytes(bytes::Bytes::new()));
        let info = crate::base::request_info::RequestInfo {
            is_resource_request: true,
            verb: "list".to_owned(),
            api_version: "v1".to_owned(),
            resource: "pods".to_owned(),
            ..Default::default()
        };
        request.extensions_mut().insert(Arc::new(info));
        request.extensions_mut().insert(Arc::new(requestor()));
        let wanted = headers::take(&mut headers(given), is_constrained).unwrap().expect("somebody is wanted");
        outcomes.push(match filter.user(&request, &wanted).await {
            Ok((user, mode)) => format!("{} {} {:?}", mode.as_str(), user.name, user.groups),
            Err(status) => status.message,
        });
    }
    let asked = authorizer.asked.lock().clone();
    (outcomes, asked)
}

const ROBOT: &str = "User \"system:serviceaccount:shop:robot\" cannot";

#[tokio::test]
async fn constrained_modes_authorize_the_request_and_each_named_user() {
    let on = "impersonate-on:user-info:list /pods/ /";
    let (outcome, asked) = run(
        &[on, "impersonate:user-info authentication.k8s.io/users/ /jane"],
        &[&[("impersonate-user", "jane")]],
    )
    .await;
    assert_eq!(outcome, ["user-info jane [\"system:authenticated\"]"]);
    assert_eq!(asked, [on, "impersonate:user-info authentication.k8s.io/users/ /jane"]);
    let node = [
        "impersonate-on:associated-node:list /pods/ /",
        "impersonate:associated-node authentication.k8s.io/nodes/ /*",
    ];
    let (outcome, _) =
        run(&node, &[&[("impersonate-user", "system:node:n")], &[("impersonate-user", "system:node:m")]])
            .await;
    let refusal = format!(
        "pods is forbidden: {ROBOT} impersonate-on:arbitrary-node:list resource \"pods\" in API group \"\" at the cluster scope"
    );
    assert_eq!(
        outcome,
        ["associated-node system:node:n [\"system:nodes\", \"system:authenticated\"]".to_owned(), refusal]
    );
    let account = [
        "impersonate-on:serviceaccount:list /pods/ /",
        "impersonate:serviceaccount authentication.k8s.io/serviceaccounts/ shop/other",
    ];
    let (outcome, _) = run(&account, &[&[("impersonate-user", "system:serviceaccount:shop:other")]]).await;
    let groups = "[\"system:serviceaccounts\", \"system:serviceaccounts:shop\", \"system:authenticated\"]";
    assert_eq!(outcome, [format!("serviceaccount system:serviceaccount:shop:other {groups}")]);
}

#[tokio::test]
async fn the_legacy_mode_authorizes_the_named_users_only() {
    let allowed = [
        "impersonate /users/ /bob",
        "impersonate /groups/ /devs",
        "impersonate authentication.k8s.io/uids/ /42",
        "impersonate authentication.k8s.io/userextras/scopes /view",
        "impersonate /serviceaccounts/ shop/other",
        "impersonate /users/ /system:anonymous",
        "impersonate /groups/ /system:unauthenticated",
    ];
    let requests: &[&[(&str, &str)]] = &[
        &[
            ("impersonate-user", "bob"),
            ("impersonate-group", "devs"),
            ("impersonate-uid", "42"),
            ("impersonate-extra-scopes", "view"),
        ],
        &[("impersonate-user", "eve")],
        &[
            ("impersonate-user", "bob"),
            ("impersonate-group", "devs"),
            ("impersonate-group", "system:masters"),
        ],
        &[("impersonate-user", "system:serviceaccount:shop:other"), ("impersonate-group", "devs")],
        &[("impersonate-user", "system:anonymous")],
        &[("impersonate-user", "bob"), ("impersonate-group", "system:unauthenticated")],
        &[("impersonate-user", "system:serviceaccount:shop")],
    ];
    let (outcome, _) = run(&allowed, requests).await;
    let core = "in API group \"\" at the cluster scope";
    let expected = [
        "legacy bob [\"devs\", \"system:authenticated\"]".to_owned(),
        format!("users \"eve\" is forbidden: {ROBOT} impersonate resource \"users\" {core}"),
        format!("groups \"system:masters\" is forbidden: {ROBOT} impersonate resource \"groups\" {core}"),
        "legacy system:serviceaccount:shop:other [\"devs\", \"system:authenticated\"]".to_owned(),
        "legacy system:anonymous [\"system:unauthenticated\"]".to_owned(),
        "legacy bob [\"system:unauthenticated\"]".to_owned(),
        format!(
            "users \"system:serviceaccount:shop\" is forbidden: {ROBOT} impersonate resource \"users\" {core}"
        ),
    ];
    assert_eq!(outcome, expected);
}

#[tokio::test]
async fn the_refusal_is_that_of_the_first_mode_that_was_tried() {
    let jane: &[(&str, &str)] = &[("impersonate-user", "jane")];
    let (outcome, _) = run(
        &["impersonate /users/ /jane"],
        &[&[("impersonate-user", "eve")], jane, &[("impersonate-user", "eve")]],
    )
    .await;
    let scope = "in API group \"\" at the cluster scope";
    assert_eq!(
        outcome[0],
        format!("pods is forbidden: {ROBOT} impersonate-on:user-info:list resource \"pods\" {scope}")
    );
    assert_eq!(outcome[1], "legacy jane [\"system:authenticated\"]");
    assert_eq!(
        outcome[2],
        format!("users \"eve\" is forbidden: {ROBOT} impersonate resource \"users\" {scope}")
    );
}

#[tokio::test]
async fn constrained_modes_are_stricter() {
    let allowed =
        ["impersonate-on:user-info:list /pods/ /", "impersonate:user-info authentication.k8s.io/users/ /bob"];
    let check = async |given: &[(&'static str, &str)], resource: &str, name: &str, why: &str| {
        let given = [&[("impersonate-user", "bob")], given].concat();
        let (outcome, _) = run(&allowed, &[&given]).await;
        let name = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        let expected = format!(
            "{resource}.authentication.k8s.io{name} is forbidden: {ROBOT} impersonate:user-info resource \"{resource}\" in API \
             group \"authentication.k8s.io\" at the cluster scope: {why}"
        );
        assert_eq!(outcome, [expected]);
    };
    check(&[("impersonate-group", "")], "groups", "", "impersonating the empty string group is not allowed")
        .await;
    check(
        &[("impersonate-group", "system:masters")],
        "groups",
        "system:masters",
        "impersonating the system:masters group is not allowed",
    )
    .await;
    check(
        &[("impersonate-extra-scopes", "x")],
        "userextras",
        "",
        "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"scopes\": must be a domain-prefixed \
         path (such as \"acme.io/foo\")",
    )
    .await;
    check(
        &[("impersonate-extra-acme.io%2fScope", "")],
        "userextras",
        "",
        "impersonating the empty string value in extra is not allowed",
    )
    .await;
}

#[tokio::test]
async fn many_groups_are_asked_for_at_once() {
    let allowed = [
        "impersonate-on:user-info:list /pods/ /",
        "impersonate:user-info authentication.k8s.io/users/ /bob",
        "impersonate:user-info authentication.k8s.io/groups/ /*",
    ];
    let groups: Vec<_> = ["a", "b", "c", "d"].map(|group| ("impersonate-group", group)).into();
    let given = [&[("impersonate-user", "bob")][..], &groups].concat();
    let (outcome, asked) = run(&allowed, &[&given]).await;
    assert_eq!(outcome, ["user-info bob [\"a\", \"b\", \"c\", \"d\", \"system:authenticated\"]"]);
    assert_eq!(asked.len(), 3);
    let (outcome, _) = run(&allowed, &[given.get(..4).unwrap()]).await;
    assert!(outcome[0].starts_with("groups.authentication.k8s.io \"a\" is forbidden: "), "{outcome:?}");
}

#[test]
fn headers_are_read_and_gone() {
    let check = |given: &[(&'static str, &str)], expected: Result<Option<&str>, &str>| {
        let mut given = headers(given);
        let taken = headers::take(&mut given, true).map(|wanted| {
            wanted.map(|user| format!("{} {} {:?} {:?}", user.name, user.uid, user.groups, user.extra))
        });
        let found = taken.as_ref().map(Option::as_deref).map_err(|status| status.message.as_str());
        assert_eq!(found, expected);
        assert!(given.keys().all(|name| !name.as_str().starts_with("impersonate-")), "{given:?}");
    };
    check(&[("accept", "x")], Ok(None));
    check(&[("impersonate-user", "")], Ok(None));
    check(&[("impersonate-user", "j"), ("impersonate-user", "k")], Ok(Some("j  [] {}")));
    // A value that is not text is not ignored.
    check(&[("impersonate-user", "j\u{fc}")], Ok(Some("j\u{fc}  [] {}")));
    check(
        &[
            ("impersonate-user", "j"),
            ("impersonate-uid", "u"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-acme.io%2ffoo", "x"),
            ("impersonate-extra-acme.io%2ffoo", "y"),
            ("impersonate-extra-bad%2", "z"),
        ],
        Ok(Some("j u [\"a\", \"b\"] {\"acme.io/foo\": [\"x\", \"y\"], \"bad%2\": [\"z\"]}")),
    );
    check(
        &[("impersonate-group", "devs")],
        Err(
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"devs\"}, Extra:map[string][]string(nil)} without \
             impersonating a user name",
        ),
    );
    check(
        &[("impersonate-uid", "1"), ("impersonate-extra-k", "v")],
        Err("requested &user.DefaultInfo{Name:\"\", UID:\"1\", Groups:[]string(nil), \
             Extra:map[string][]string{\"k\":[]string{\"v\"}}} without impersonating a user name"),
    );
}

#[tokio::test]
async fn without_the_gate_there_is_only_the_legacy_mode() {
    let allowed = [
        "impersonate-on:user-info:list /pods/ /",
        "impersonate:user-info authentication.k8s.io/users/ /jane",
        "impersonate /users/ /bob",
        "impersonate /groups/ /devs",
    ];
    let (outcome, asked) = run_with(
        false,
        &allowed,
        &[
            &[("impersonate-user", "jane")],
            &[("impersonate-user", "bob"), ("impersonate-uid", "1"), ("impersonate-group", "devs")],
            &[("impersonate-user", "bob"), ("impersonate-group", "devs")],
        ],
    )
    .await;
    let scope = "at the cluster scope";
    let expected = [
        format!(
            "users \"jane\" is forbidden: {ROBOT} impersonate resource \"users\" in API group \"\" {scope}"
        ),
        format!(
            "uids.authentication.k8s.io \"1\" is forbidden: {ROBOT} impersonate resource \"uids\" in API group \
             \"authentication.k8s.io\" {scope}"
        ),
        "legacy bob [\"devs\", \"system:authenticated\"]".to_owned(),
    ];
    assert_eq!(outcome, expected);
    let all_asked = [
        "impersonate /users/ /jane",
        "impersonate /users/ /bob",
        "impersonate /groups/ /devs",
        "impersonate authentication.k8s.io/uids/ /1",
        "impersonate /users/ /bob",
        "impersonate /groups/ /devs",
    ];
    assert_eq!(asked, all_asked);
    let mut nameless = headers(&[
        ("impersonate-group", "devs"),
        ("impersonate-uid", "1"),
        ("impersonate-extra-scopes", "view"),
    ]);
    assert_eq!(
        headers::take(&mut nameless, false).unwrap_err().message,
        "requested [{Group  devs    } {UserExtra  view  authentication.k8s.io/v1  scopes} \
         {UID  1  authentication.k8s.io/v1  }] without impersonating a user"
    );
}
