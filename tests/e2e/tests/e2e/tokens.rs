//! Tests service-account tokens with real clients.

use crate::Result;
use pintle_e2e::{Cli, start, variable};
use pintle_harness::Server;
use std::process::Command;

const SCRIPT: &str = include_str!("tokens_client.py");

/// A server with a service account that may read pods, and a pod of the account.
fn with_account() -> Result<Server> {
    let server = start()?;
    let kubectl = Cli::kubectl(&server)?;
    kubectl.run(&["create", "serviceaccount", "bot"])?;
    kubectl.run(&["create", "role", "viewer", "--verb=get,list", "--resource=pods"])?;
    kubectl.run(&["create", "rolebinding", "bot", "--role=viewer", "--serviceaccount=default:bot"])?;
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {serviceAccountName: bot, containers: [{name: c, \
               image: example.com/c}]}\n";
    kubectl.feed(&["apply", "-f", "-"], pod)?;
    Ok(server)
}

#[test]
fn kubectl_creates_tokens_and_uses_them() -> Result {
    let server = with_account()?;
    let kubectl = Cli::kubectl(&server)?;
    let create = |more: &[&str]| -> Result<String> {
        let args = [&["create", "token", "bot"][..], more].concat();
        Ok(kubectl.run(&args)?.trim().to_owned())
    };
    // The administrator's certificate would take precedence over a token.
    let config = kubectl.json(&["config", "view", "--raw", "-o", "json"])?;
    let cluster = &config["clusters"][0]["cluster"];
    let plain = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {cluster}}}]\ncontexts: [{{name: c, \
         context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    let plain = kubectl.file("plain.kubeconfig", &plain)?;
    let own = |token: &str| [format!("--kubeconfig={plain}"), format!("--token={token}")];
    let token = create(&[])?;
    let [config, flag] = own(&token);
    let who = kubectl.run(&[&config, &flag, "auth", "whoami", "-o", "json"])?;
    assert!(who.contains("system:serviceaccount:default:bot"), "{who}");
    assert!(who.contains("authentication.kubernetes.io/credential-id"), "{who}");
    assert_eq!(kubectl.run(&[&config, &flag, "get", "pods", "-o", "name"])?, "pod/p\n");
    let refused = kubectl.fails(&[&config, &flag, "get", "secrets"])?;
    let expected = "Error from server (Forbidden): secrets is forbidden: User \"system:serviceaccount:default:bot\" cannot list \
                    resource \"secrets\" in API group \"\" in the namespace \"default\"\n";
    assert_eq!(refused, expected);

    let bound = create(&["--bound-object-kind=Pod", "--bound-object-name=p", "--duration=10m"])?;
    let [config, flag] = own(&bound);
    let who = kubectl.run(&[&config, &flag, "auth", "whoami", "-o", "json"])?;
    assert!(who.contains("authentication.kubernetes.io/pod-name"), "{who}");
    let elsewhere = create(&["--audience=vault"])?;
    let [config, flag] = own(&elsewhere);
    let refused = kubectl.fails(&[&config, &flag, "get", "pods"])?;
    assert!(refused.contains("You must be logged in to the server"), "{refused}");
    let short = kubectl.fails(&["create", "token", "bot", "--duration=9m"])?;
    assert!(short.contains("may not specify a duration less than 10 minutes"), "{short}");
    let missing = ["create", "token", "bot", "--bound-object-kind=Secret", "--bound-object-name=s"];
    let missing = kubectl.fails(&missing)?;
    assert!(missing.contains("secrets \"s\" not found"), "{missing}");
    Ok(())
}

#[test]
fn the_python_client_lives_by_a_token() -> Result {
    let server = with_account()?;
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .env("PYTHONPATH", variable("PINTLE_PYTHONPATH")?)
        .env("KUBECONFIG", server.kubeconfig())
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
    Ok(())
}
