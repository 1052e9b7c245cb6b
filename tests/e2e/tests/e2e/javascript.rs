//! Tests the JavaScript client.

use crate::Result;
use pintle_e2e::{start, variable};
use std::process::Command;

const SCRIPT: &str = "tests/e2e/tests/e2e/javascript_client.mjs";

#[test]
fn the_javascript_client_creates_reads_changes_hears_and_deletes() -> Result {
    let server = start()?;
    let output = Command::new(variable("PINTLE_NODE")?)
        .arg(SCRIPT)
        .current_dir(variable("PINTLE_ROOT")?)
        .env("NODE_PATH", variable("PINTLE_NODE_PATH")?)
        .env("KUBECONFIG", server.kubeconfig())
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().last(), Some("ok"));
    Ok(())
}
