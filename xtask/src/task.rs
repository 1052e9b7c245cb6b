//! Runs commands.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command and shows its output.
///
/// # Errors
/// When the program does not exist or fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    eprintln!("+ {}", shown(command));
    let status = command.status().map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// When the program does not exist or fails; the message has its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", shown(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{}: {}\n{errors}", shown(command), output.status))
}

/// The cargo that runs this task, in the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // Cargo describes the package to a program that it runs. Build scripts read the same variables of their own packages:
    // with those of this one, they and all that depends on them would be built again after each command given by hand.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        command.env_remove(name);
    }
    command
}

/// Cargo's target directory.
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |directory| root.join(directory))
}

/// Builds the server and returns the path of its binary.
///
/// # Errors
/// When the build fails.
pub(crate) fn build_server(root: &Path, release: bool) -> Result<PathBuf, String> {
    build(root, "pintle", &[], release)
}

/// Builds the example extension API server, and the server, so that both have libraries of the same features. Returns the
/// path of the example.
pub(crate) fn build_extension_server(root: &Path, release: bool) -> Result<PathBuf, String> {
    build(root, "extension-server", &["pintle"], release)
}

/// Builds a package whose binary has its name, together with others, and returns the path of the binary.
fn build(root: &Path, package: &str, others: &[&str], release: bool) -> Result<PathBuf, String> {
    let mut command = cargo(root);
    command.args(["build", "--package", package]);
    for other in others {
        command.args(["--package", other]);
    }
    if release {
        command.arg("--release");
    }
    run(&mut command)?;
    Ok(target_directory(root).join(if release { "release" } else { "debug" }).join(package))
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}
