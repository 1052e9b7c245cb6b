//! Tests that secrets and tokens are in no log, and that users without permissions are refused.

use crate::Result;
use pintle_e2e::config;
use pintle_harness::{MASTER_TOKEN, OTHER_TOKEN, Server};
use serde_json::json;

#[test]
fn logs_show_neither_secrets_nor_tokens() -> Result {
    let mut server = Server::start(config()?.flag("-v=9"))?;
    let client = server.client()?;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"password": "plain-swordfish"}, "data": {"key": "ZW5jb2RlZC1zd29yZGZpc2g="},
    });
    assert_eq!(client.post(secrets, &secret)?.status, 201);
    assert_eq!(client.get(&format!("{secrets}/s"))?.status, 200);
    assert_eq!(client.get(secrets)?.status, 200);
    // A log of errors could quote the bodies of refused requests.
    let mut invalid = secret.clone();
    invalid["metadata"]["name"] = "Not A Name".into();
    assert_eq!(client.post(secrets, &invalid)?.status, 422);
    let broken = br#"{"apiVersion":"v1","kind":"Secret","stringData":{"password":"plain-swordfish",}}"#;
    assert_eq!(client.request("POST", secrets, &[("content-type", "application/json")], broken)?.status, 400);
    assert_eq!(client.with_token(OTHER_TOKEN).get(secrets)?.status, 403);
    assert_eq!(client.with_token("wrong-token-that-no-log-may-show").get(secrets)?.status, 401);
    server.terminate()?;
    server.wait_for_end()?;
    let log = server.log()?;
    assert!(!log.is_empty());
    for hidden in [
        "plain-swordfish",
        "cGxhaW4tc3dvcmRmaXNo",
        "ZW5jb2RlZC1zd29yZGZpc2g",
        "encoded-swordfish",
        MASTER_TOKEN,
        OTHER_TOKEN,
        "wrong-token-that-no-log-may-show",
        "PRIVATE KEY",
    ] {
        assert!(!log.contains(hidden), "the log shows {hidden}");
    }
    Ok(())
}

#[test]
fn files_with_keys_are_for_the_owner_only() -> Result {
    use std::os::unix::fs::PermissionsExt;
    let server = pintle_e2e::start()?;
    let data = server.directory().join("data");
    for file in ["admin.kubeconfig", "certs/ca.key", "certs/apiserver.key", "certs/admin.key"] {
        let mode = std::fs::metadata(data.join(file))?.permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
    Ok(())
}

#[test]
fn strangers_see_discovery_of_the_version_only() -> Result {
    let server = pintle_e2e::start()?;
    let anonymous = server.anonymous_client()?;
    let stranger = anonymous.with_token(OTHER_TOKEN);
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(anonymous.get(path)?.status, 200, "{path}");
    }
    for path in ["/api/v1/namespaces", "/api/v1/namespaces/default/secrets/s", "/metrics"] {
        assert_eq!(anonymous.get(path)?.status, 403, "{path}");
        assert_eq!(stranger.get(path)?.status, 403, "{path}");
    }
    let body = stranger.get("/api/v1/namespaces/default/secrets/s")?.json()?;
    assert_eq!(
        body["message"],
        "secrets \"s\" is forbidden: User \"stranger\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\""
    );
    Ok(())
}
