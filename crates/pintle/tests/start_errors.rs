//! Tests the command with flags or a configuration of admission that are wrong: it ends with exit code 1, and names the file
//! or flag and the error.

#![expect(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::{path::Path, process::Command};

/// Starts the server with flags, and returns the last line of its errors, without the backslashes in quoted values.
fn error(data: &Path, flags: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .arg(format!("--data-dir={}", data.display()))
        .args(["--storage-backend=memory", "--bind-address=127.0.0.1", "--secure-port=0"])
        .args(flags)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{flags:?}: {errors}");
    errors.lines().last().unwrap_or_default().replace('\\', "")
}

#[test]
fn all_wrong_flags_are_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let missing = format!("--tracing-config-file={}", dir.path().join("none.yaml").display());
    let flags = ["--authorization-mode=Nope", &missing, "--request-timeout=-1s", "--oidc-client-id=a"];
    let told = "[--request-timeout can not be negative value, oidc-issuer-url and oidc-client-id must be specified together when \
                any oidc-* flags are set, authorization-mode \"Nope\" is not a valid mode]";
    let found = error(dir.path(), &flags);
    assert!(found.contains(told), "{found}");
    let syntax = error(dir.path(), &[&flags[..], &["--event-ttl=x"]].concat());
    let told = "Error: invalid argument \"x\" for \"--event-ttl\" flag: time: invalid duration \"x\"";
    assert_eq!(syntax, told);
}

#[test]
fn a_server_does_not_start_with_a_wrong_configuration_of_admission() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("admission.yaml");
    let check_flags = |flags: &[&str], expected: &str| {
        let found = error(dir.path(), flags);
        assert!(found.contains(expected), "{flags:?}: {found}");
    };
    let check = |text: &str, expected: &str| {
        std::fs::write(&file, text).unwrap();
        check_flags(&[&format!("--admission-control-config-file={}", file.display())], expected);
    };
    check_flags(&["--enable-admission-plugins=Nope"], "enable-admission-plugins plugin \"Nope\" is unknown");
    check_flags(
        &["--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=NodeRestriction"],
        "overlapped",
    );
    let missing = dir.path().join("none.yaml");
    check_flags(
        &[&format!("--admission-control-config-file={}", missing.display())],
        "failed to apply admission: failed to read plugin config: unable to read admission control configuration from",
    );
    check("kind: [", "failed to read plugin config: ");
    let header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
    check(&format!("{header}nope: 1\n"), "strict decoding error: unknown field \"nope\"");
    check_flags(
        &["--enable-admission-plugins=EventRateLimit"],
        "failed to apply admission: couldn't init admission plugin \"EventRateLimit\": limits: Invalid value: null: must not \
         be empty",
    );
    let relative = format!(
        "{header}plugins:\n- name: MutatingAdmissionWebhook\n  configuration:\n    \
         apiVersion: apiserver.config.k8s.io/v1\n    kind: WebhookAdmissionConfiguration\n    kubeConfigFile: some.yaml\n"
    );
    check(&relative, "kubeConfigFile: Invalid value: \"some.yaml\": must be an absolute file path");
}
