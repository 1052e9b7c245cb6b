//! Tests service account tokens: issued, used, reviewed, and expired.

use crate::harness::{Answer, Identity, PATIENCE, Server, plain_user};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use pintle_machinery::{Value, json};
use std::time::{Duration, Instant};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn post(client: &Server, path: &str, body: Value) -> Answer {
    client.exchange("POST", path, &[("Content-Type", "application/json")], body.to_string()).await
}

async fn account(server: &Server) {
    let answer = post(server, ACCOUNTS, json!({"metadata": {"name": "bot"}})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

async fn token(server: &Server, spec: Value) -> String {
    let answer = post(server, &format!("{ACCOUNTS}/bot/token"), json!({"spec": spec})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.str_at("/status/token")
}

/// The user that a token authenticates as, or the status code of the refusal. The server closes a connection with an
/// invalid token, so that each token has its own.
async fn who(server: &Server, token: &str) -> Result<Value, u16> {
    let client = server.client(Identity::Nobody).await;
    let authorization = format!("Bearer {token}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = client.exchange("POST", path, &headers, "{}").await;
    match answer.status {
        201 => Ok(answer.json()["status"]["userInfo"].clone()),
        code => Err(code),
    }
}

async fn review(server: &Server, spec: Value) -> Value {
    let answer = post(server, "/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": spec})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_who_it_is_until_it_is_gone() {
    let server = Server::start().await;
    account(&server).await;
    let token = token(&server, json!({})).await;
    let user = who(&server, &token).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:bot");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    assert_eq!(user["groups"], json!(groups));
    let told = review(&server, json!({"token": token})).await;
    assert_eq!(told["authenticated"], true);
    assert_eq!(told["user"], user);
    assert_eq!(told["audiences"], json!(["https://kubernetes.default.svc"]));

    let forged = format!("{}AAAA", token.rsplit_once('.').unwrap().0.to_owned() + ".");
    assert_eq!(who(&server, &forged).await, Err(401));
    let refused = review(&server, json!({"token": token, "audiences": ["vault"]})).await;
    let why = "[invalid bearer token, token audiences [\"https://kubernetes.default.svc\"] is invalid for the target \
               audiences [\"vault\"]]";
    assert_eq!(refused, json!({"error": why, "user": {}}));

    let gone = server.exchange("DELETE", &format!("{ACCOUNTS}/bot"), &[], "").await;
    assert_eq!(gone.status, 200);
    let fresh =
        review(&server, json!({"token": token, "audiences": ["https://kubernetes.default.svc", "x"]})).await;
    assert_eq!(fresh["error"], "[invalid bearer token, serviceaccounts \"bot\" not found]");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_outlives_the_server_and_is_published() {
    let dir = tempfile::tempdir().unwrap();
    let options = || pintle::Options {
        storage_backend: pintle::StorageBackend::Embedded,
        ..crate::harness::options(dir.path())
    };
    let server = Server::start_in(options()).await;
    account(&server).await;
    let token = token(&server, json!({"audiences": ["https://kubernetes.default.svc", "vault"]})).await;
    let key_set = [("Accept", "application/jwk-set+json")];
    let keys = server.exchange("GET", "/openid/v1/jwks", &key_set, "").await;
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    assert_eq!(keys.header("cache-control"), "public, max-age=3600");
    let header = token.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    assert_eq!(header, json!({"alg": "RS256", "kid": keys.json()["keys"][0]["kid"]}));
    let configuration = server.send("GET /.well-known/openid-configuration").await;
    assert_eq!(configuration.header("cache-control"), "public, max-age=3600");
    assert_eq!(configuration.json()["issuer"], "https://kubernetes.default.svc");
    for (method, path, accept, status) in [
        ("GET", "/openid/v1/jwks", "application/json", 406),
        ("GET", "/openid/v1/jwks", "text/html, */*", 200),
        ("POST", "/openid/v1/jwks", "*/*", 405),
        ("GET", "/.well-known/openid-configuration/", "application/yaml", 406),
        ("GET", "/openid/v1/jwks/x", "*/*", 404),
    ] {
        let answer = server.exchange(method, path, &[("Accept", accept)], "").await;
        assert_eq!(answer.status, status, "{method} {path} {accept}: {}", answer.text());
    }
    for path in ["/openid/v1/jwks/x", "/.well-known/openid-configuration/x/y", "/version/x"] {
        let answer = server.send(&format!("GET {path}")).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (404, &json!("NotFound")), "{path}");
    }
    assert_eq!(server.send("GET /openid/v1/x").await.text(), "404 page not found\n");
    server.stop().await;

    let server = Server::start_in(options()).await;
    assert!(who(&server, &token).await.is_ok());
    let again = server.exchange("GET", "/openid/v1/jwks", &key_set, "").await;
    assert_eq!(again.body, keys.body);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_tokens_are_shortened_and_refused_as_told() {
    let server = Server::start_with(|options| {
        options.service_accounts.max_token_expiration = Duration::from_secs(3600);
        plain_user(options);
    })
    .await;
    account(&server).await;
    let path = format!("{ACCOUNTS}/bot/token");
    let long = post(&server, &path, json!({"spec": {"expirationSeconds": 7200}})).await;
    assert_eq!(long.json()["spec"]["expirationSeconds"], 3600);
    let warning = "299 - \"requested expiration of 7200 seconds shortened to 3600 seconds\"";
    assert_eq!(long.header("warning"), warning);
    let another = post(&server, &path, json!({"metadata": {"uid": "x"}})).await;
    assert_eq!(another.status, 409, "{}", another.text());
    for (name, message) in
        [("", "Name parameter required."), ("a/b", "Name parameter invalid: \"a/b\": may not contain '/'")]
    {
        let bound = json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name}}});
        let refused = post(&server, &path, bound).await;
        assert_eq!((refused.status, refused.str_at("/message")), (400, message.to_owned()));
    }
    // A request that accepts protobuf gets protobuf.
    let protobuf = [("Accept", "application/vnd.kubernetes.protobuf"), ("Content-Type", "application/json")];
    let answer = server.exchange("POST", &path, &protobuf, "{}").await;
    assert_eq!((answer.status, answer.body.get(..4)), (201, Some(&b"k8s\0"[..])));
    let plain = [("Authorization", "Bearer plain"), ("Content-Type", "application/json")];
    let nobody = server.client(Identity::Nobody).await;
    let refused = nobody.exchange("POST", &path, &plain, "{}").await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    server.stop().await;
}

/// The gates that limit requests for tokens can be closed: a wrong uid is then remarked on, and nodes choose audiences.
#[tokio::test(flavor = "multi_thread")]
async fn requests_for_tokens_are_limited_by_gates() {
    for is_open in [true, false] {
        let server = Server::start_with(|options| {
            let gates = ["ServiceAccountNodeAudienceRestriction", "TokenRequestServiceAccountUIDValidation"];
            gates.iter().for_each(|gate| options.features.gates.add(&format!("{gate}={is_open}")));
            options.admission.enable_plugins = Some(vec!["NodeRestriction".to_owned()]);
        })
        .await;
        account(&server).await;
        let path = format!("{ACCOUNTS}/bot/token");
        let other = post(&server, &path, json!({"metadata": {"uid": "x"}})).await;
        assert_eq!(other.status, if is_open { 409 } else { 201 }, "{}", other.text());
        if !is_open {
            let uid = server.send(&format!("GET {ACCOUNTS}/bot")).await.str_at("/metadata/uid");
            let warning = format!(
                "299 - \"the UID in the token request (x) does not match the UID of the service account ({uid}) but \
                 TokenRequestServiceAccountUIDValidation is not enabled. In the future, this will return a conflict \
                 error\""
            );
            assert_eq!((other.header("warning"), other.str_at("/metadata/uid")), (&*warning, "x".to_owned()));
        }
        let pod = json!({"metadata": {"name": "p"}, "spec": {
            "nodeName": "n",
            "serviceAccountName": "bot",
            "containers": [{"name": "c", "image": "example.com/c"}],
        }});
        let pod = post(&server, "/api/v1/namespaces/default/pods", pod).await;
        let bound =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.str_at("/metadata/uid")});
        let body = json!({"spec": {"audiences": ["vault"], "boundObjectRef": bound}}).to_string();
        let node = [
            ("Content-Type", "application/json"),
            ("Impersonate-User", "system:node:n"),
            ("Impersonate-Group", "system:nodes"),
        ];
        let granted = until_known(async || server.exchange("POST", &path, &node, body.clone()).await).await;
        assert_eq!(granted.status, if is_open { 403 } else { 201 }, "{}", granted.text());
        server.stop().await;
    }
}

/// Repeats a request of a node until the authorizer knows its pod.
async fn until_known(ask: impl AsyncFn() -> Answer) -> Answer {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = ask().await;
        if !answer.text().contains("no relationship found") {
            return answer;
        }
        assert!(Instant::now() < end, "{}", answer.text());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_join_by_secrets_when_they_may() {
    let secret = |groups: &str| {
        let encode = |text: &str| STANDARD.encode(text);
        json!({
            "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
            "data": {
                "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"),
                "usage-bootstrap-authentication": encode("true"), "auth-extra-groups": encode(groups),
            },
        })
    };
    for (is_on, expected) in [(true, Ok("system:bootstrap:abcdef".to_owned())), (false, Err(401))] {
        let server =
            Server::start_with(|options| options.service_accounts.enable_bootstrap_token_auth = is_on).await;
        let made =
            post(&server, "/api/v1/namespaces/kube-system/secrets", secret("system:bootstrappers:a")).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let found = who(&server, "abcdef.0123456789abcdef").await;
        let name = found.map(|user| user["username"].as_str().unwrap().to_owned());
        assert_eq!(name, expected);
        assert_eq!(who(&server, "abcdef.0123456789abcdee").await, Err(401));
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_a_secret_is_good_while_it_is_there_and_its_use_is_noted() {
    use pintle_jwt::SigningKey;
    let dir = tempfile::tempdir().unwrap();
    let (key, pem) = SigningKey::generate_rsa().unwrap();
    let path = dir.path().join("sa.key");
    std::fs::write(&path, pem.as_bytes()).unwrap();
    let server = Server::start_with(|options| {
        options.service_accounts.signing_key_file = Some(path.clone());
        options.service_accounts.key_files = vec![path.clone()];
    })
    .await;
    account(&server).await;
    let uid = server.send(&format!("GET {ACCOUNTS}/bot")).await.str_at("/metadata/uid");
    let prefix = "kubernetes.io/serviceaccount";
    let claims = json!({
        "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:bot",
        (format!("{prefix}/namespace")): "default", (format!("{prefix}/secret.name")): "s",
        (format!("{prefix}/service-account.name")): "bot", (format!("{prefix}/service-account.uid")): uid,
    });
    let token = key.sign_token(claims.to_string().as_bytes()).unwrap();
    assert_eq!(who(&server, &token).await, Err(401));
    let secret = json!({
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "bot"}},
        "type": "kubernetes.io/service-account-token", "data": {"token": STANDARD.encode(&token)},
    });
    let made = post(&server, "/api/v1/namespaces/default/secrets", secret).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let user = who(&server, &token).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:bot");
    assert!(user.get("extra").is_none());
    let stored = server.send("GET /api/v1/namespaces/default/secrets/s").await.json();
    let label = &stored["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"];
    assert_eq!(label.as_str().unwrap().len(), "2026-01-01".len());
    server.stop().await;
}
