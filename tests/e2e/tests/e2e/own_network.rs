//! Runs tests in a network of their own.

use crate::Result;
use pintle_harness::{in_own_network, is_in_own_network};

/// Runs a test (`module::name`) in a network of its own, by another process of this program.
pub(crate) fn in_network(test: &str, body: fn() -> Result) -> Result {
    if is_in_own_network() {
        return body();
    }
    let output = in_own_network(std::env::current_exe()?).args(["--exact", test, "--nocapture"]).output()?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.success() && text.contains("1 passed") {
        true => Ok(()),
        false => Err(text.into()),
    }
}
