//! Tests the Python client, and an operator based on it.

use crate::Result;
use pintle_e2e::{start, variable};
use std::process::Command;

#[test]
fn the_python_client_creates_reads_changes_watches_and_deletes() -> Result {
    run(include_str!("python_client.py"))
}

#[test]
fn a_kopf_operator_keeps_what_its_objects_say() -> Result {
    run(include_str!("kopf_operator.py"))
}

fn run(script: &str) -> Result {
    let server = start()?;
    let output = Command::new("python3")
        .args(["-c", script])
        .env("PYTHONPATH", variable("PINTLE_PYTHONPATH")?)
        .env("KUBECONFIG", server.kubeconfig())
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
    Ok(())
}
