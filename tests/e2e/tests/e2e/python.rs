//! The Python client.

use crate::Result;
use pintle_e2e::{start, variable};
use std::process::Command;

const SCRIPT: &str = include_str!("python_client.py");

#[test]
fn the_python_client_creates_reads_changes_watches_and_deletes() -> Result {
    let server = start()?;
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .env("PYTHONPATH", variable("PINTLE_PYTHONPATH")?)
        .env("KUBECONFIG", server.kubeconfig())
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
    Ok(())
}
