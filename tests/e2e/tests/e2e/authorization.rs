//! Tests the authorizers and impersonation.

use crate::Result;
use pintle_e2e::{Cli, config, start};
use pintle_harness::{MASTER_TOKEN, OTHER_TOKEN, Server};
use std::fs;

#[test]
fn kubectl_acts_as_others() -> Result {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    let refused = kubectl.fails(&["get", "pods", "--as", "jane"])?;
    let expected = "Error from server (Forbidden): pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" \
                    in the namespace \"default\"\n";
    assert_eq!(refused, expected);
    kubectl.run(&["get", "pods", "--as", "jane", "--as-group", "system:masters", "--as-uid", "42"])?;
    // A node can read itself, by any of the authorizers.
    kubectl.feed(&["apply", "-f", "-"], "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n")?;
    let node = ["--as", "system:node:one", "--as-group", "system:nodes"];
    assert_eq!(kubectl.run(&[&["get", "node", "one", "-o", "name"][..], &node].concat())?, "node/one\n");
    let refused = kubectl.fails(&[&["get", "nodes"][..], &node].concat())?;
    assert!(refused.contains("node 'one' cannot read all nodes, only its own Node object"), "{refused}");
    Ok(())
}

#[test]
fn who_may_not_act_as_others_is_refused() -> Result {
    let server = start()?;
    let client = server.client()?.with_token(OTHER_TOKEN);
    let status = |headers: &[(&str, &str)]| -> Result<String> {
        let answer = client.request("GET", "/api/v1/nodes", headers, b"")?;
        Ok(format!("{} {}", answer.status, answer.json()?["message"].as_str().unwrap_or_default()))
    };
    let scope = "in API group \"\" at the cluster scope";
    assert_eq!(
        status(&[("impersonate-user", "admin"), ("impersonate-group", "system:masters")])?,
        format!(
            "403 nodes is forbidden: User \"stranger\" cannot impersonate-on:user-info:list resource \"nodes\" {scope}"
        )
    );
    let sent = status(&[("impersonate-group", "system:masters")])?;
    assert!(sent.starts_with("400 requested &user.DefaultInfo{"), "{sent}");
    assert_eq!(
        status(&[("x-remote-user", "admin"), ("x-remote-group", "system:masters")])?,
        format!("403 nodes is forbidden: User \"stranger\" cannot list resource \"nodes\" {scope}")
    );
    Ok(())
}

#[test]
fn a_wrong_configuration_is_told() -> Result {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("authorization.yaml");
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
    let flag = format!("--authorization-config={}", path.display());
    let start = || -> Result<Server> { Server::start(config()?.flag(&flag)) };
    fs::write(&path, format!("{head}- {{type: RBAC, name: roles}}\n"))?;
    let Err(error) = start() else { panic!("it started") };
    let error = error.to_string();
    assert!(error.contains("expected name rbac for authorizer RBAC instead of roles"), "{error}");
    fs::write(
        &path,
        format!("{head}- {{type: RBAC, name: rbac}}\n- {{type: AlwaysDeny, name: alwaysdeny}}\n"),
    )?;
    let server = start()?;
    let client = server.client()?;
    let refused = client.with_token(OTHER_TOKEN).get("/metrics")?;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("Everything is forbidden."), "{}", refused.text());
    assert_eq!(client.with_token(MASTER_TOKEN).get("/metrics")?.status, 200);
    Ok(())
}

#[test]
fn policies_are_read_from_a_file() -> Result {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("policies.jsonl");
    let modes = "--authorization-mode=ABAC";
    let start = || -> Result<Server> {
        Server::start(config()?.flag(modes).flag(format!("--authorization-policy-file={}", path.display())))
    };
    fs::write(&path, "{}\n{\"kind\": \"Policy\"}\n")?;
    let Err(error) = start() else { panic!("it started") };
    let expected = format!("error reading policy file {}, line 2: ", path.display());
    assert!(error.to_string().contains(&expected), "{error}");
    // The harness polls for readiness as an anonymous user.
    let policies = r#"{"user": "stranger", "namespace": "default", "readonly": true}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:unauthenticated", "nonResourcePath": "/readyz"}}
"#;
    fs::write(&path, policies)?;
    let server = start()?;
    let client = server.client()?.with_token(OTHER_TOKEN);
    assert_eq!(client.get("/api/v1/namespaces/default/pods")?.status, 200);
    assert_eq!(client.get("/api/v1/namespaces/kube-system/pods")?.status, 403);
    assert_eq!(client.request("DELETE", "/api/v1/namespaces/default/pods", &[], b"")?.status, 403);
    Ok(())
}
