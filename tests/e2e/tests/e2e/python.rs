//! Tests the Python client, and an operator based on it.

use crate::Result;
use pintle_e2e::{start, variable};
use std::{fs, path::PathBuf, process::Command};

#[test]
fn the_python_client_creates_reads_changes_watches_and_deletes() -> Result {
    run(include_str!("python_client.py"))
}

/// The client of WebSocket is a dependency of the Kubernetes client.
#[test]
fn a_websocket_client_watches() -> Result {
    run(include_str!("websocket_client.py"))
}

#[test]
fn a_kopf_operator_keeps_what_its_objects_say() -> Result {
    run(include_str!("kopf_operator.py"))
}

/// The webhook's certificate is its own authority, as operators make it.
#[test]
fn the_webhooks_of_a_kopf_operator_admit_objects() -> Result {
    let directory = tempfile::tempdir()?;
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&key)?;
    let file = |name: &str| directory.path().join(name);
    fs::write(file("webhook.crt"), certificate.pem())?;
    fs::write(file("webhook.key"), key.serialize_pem())?;
    let files = [("WEBHOOK_CERTIFICATE", file("webhook.crt")), ("WEBHOOK_KEY", file("webhook.key"))];
    run_with(include_str!("kopf_admission.py"), &files)
}

fn run(script: &str) -> Result {
    run_with(script, &[])
}

fn run_with(script: &str, variables: &[(&str, PathBuf)]) -> Result {
    let server = start()?;
    let output = Command::new("python3")
        .args(["-c", script])
        .env("PYTHONPATH", variable("PINTLE_PYTHONPATH")?)
        .env("KUBECONFIG", server.kubeconfig())
        .envs(variables.iter().map(|(name, path)| (name, path)))
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
    Ok(())
}
