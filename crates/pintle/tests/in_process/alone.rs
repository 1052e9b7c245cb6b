//! Runs tests that measure the memory of their process in a process of their own.

use std::{env, process::Command};

/// Set for the process of one test.
const VARIABLE: &str = "PINTLE_ALONE";

/// Whether this process is that of the named test alone. Otherwise the test is run in such a process, and fails if it
/// fails there.
pub(crate) fn is_alone(test: &str) -> bool {
    if env::var_os(VARIABLE).is_some_and(|own| own == test) {
        return true;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command.args([test, "--exact", "--nocapture"]).env(VARIABLE, test).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    print!("{told}");
    false
}
