//! The help, in kube-apiserver's sections.

use clap::{Arg, Command};
use std::fmt::Write as _;

/// The sections in the order of the help, each with its flags. All other flags are this server's own.
pub(super) const SECTIONS: [(&str, &[&str]); 15] = [
    (
        "Generic",
        &[
            "advertise-address",
            "cors-allowed-origins",
            "emulated-version",
            "emulation-forward-compatible",
            "external-hostname",
            "feature-gates",
            "goaway-chance",
            "livez-grace-period",
            "max-mutating-requests-inflight",
            "max-requests-inflight",
            "min-compatibility-version",
            "min-request-timeout",
            "request-timeout",
            "runtime-config-emulation-forward-compatible",
            "send-retry-after-while-not-ready-once",
            "shutdown-delay-duration",
            "shutdown-send-retry-after",
            "shutdown-watch-termination-grace-period",
            "storage-initialization-timeout",
            "strict-transport-security-directives",
        ],
    ),
    (
        "Etcd",
        &[
            "delete-collection-workers",
            "enable-garbage-collector",
            "encryption-provider-config",
            "encryption-provider-config-automatic-reload",
            "etcd-cafile",
            "etcd-certfile",
            "etcd-compaction-interval",
            "etcd-count-metric-poll-period",
            "etcd-db-metric-poll-interval",
            "etcd-healthcheck-timeout",
            "etcd-keyfile",
            "etcd-prefix",
            "etcd-readycheck-timeout",
            "etcd-servers",
            "etcd-servers-overrides",
            "lease-reuse-duration-seconds",
            "storage-backend",
            "storage-media-type",
            "watch-cache",
            "watch-cache-sizes",
        ],
    ),
    (
        "Secure serving",
        &[
            "bind-address",
            "cert-dir",
            "disable-http2-serving",
            "http2-max-streams-per-connection",
            "permit-address-sharing",
            "permit-port-sharing",
            "secure-port",
            "tls-cert-file",
            "tls-cipher-suites",
            "tls-curve-preferences",
            "tls-min-version",
            "tls-private-key-file",
            "tls-sni-cert-key",
        ],
    ),
    (
        "Auditing",
        &[
            "audit-log-batch-buffer-size",
            "audit-log-batch-max-size",
            "audit-log-batch-max-wait",
            "audit-log-batch-throttle-burst",
            "audit-log-batch-throttle-enable",
            "audit-log-batch-throttle-qps",
            "audit-log-compress",
            "audit-log-format",
            "audit-log-maxage",
            "audit-log-maxbackup",
            "audit-log-maxsize",
            "audit-log-mode",
            "audit-log-path",
            "audit-log-truncate-enabled",
            "audit-log-truncate-max-batch-size",
            "audit-log-truncate-max-event-size",
            "audit-log-version",
            "audit-policy-file",
            "audit-webhook-batch-buffer-size",
            "audit-webhook-batch-max-size",
            "audit-webhook-batch-max-wait",
            "audit-webhook-batch-throttle-burst",
            "audit-webhook-batch-throttle-enable",
            "audit-webhook-batch-throttle-qps",
            "audit-webhook-config-file",
            "audit-webhook-initial-backoff",
            "audit-webhook-mode",
            "audit-webhook-truncate-enabled",
            "audit-webhook-truncate-max-batch-size",
            "audit-webhook-truncate-max-event-size",
            "audit-webhook-version",
        ],
    ),
    ("Features", &["contention-profiling", "debug-socket-path", "enable-priority-and-fairness", "profiling"]),
    (
        "Authentication",
        &[
            "anonymous-auth",
            "api-audiences",
            "authentication-config",
            "authentication-token-webhook-cache-ttl",
            "authentication-token-webhook-config-file",
            "authentication-token-webhook-version",
            "client-ca-file",
            "enable-bootstrap-token-auth",
            "oidc-ca-file",
            "oidc-client-id",
            "oidc-groups-claim",
            "oidc-groups-prefix",
            "oidc-issuer-url",
            "oidc-required-claim",
            "oidc-signing-algs",
            "oidc-username-claim",
            "oidc-username-prefix",
            "requestheader-allowed-names",
            "requestheader-client-ca-file",
            "requestheader-extra-headers-prefix",
            "requestheader-group-headers",
            "requestheader-uid-headers",
            "requestheader-username-headers",
            "service-account-extend-token-expiration",
            "service-account-issuer",
            "service-account-jwks-uri",
            "service-account-key-file",
            "service-account-lookup",
            "service-account-max-token-expiration",
            "token-auth-file",
        ],
    ),
    (
        "Authorization",
        &[
            "authorization-config",
            "authorization-mode",
            "authorization-policy-file",
            "authorization-webhook-cache-authorized-ttl",
            "authorization-webhook-cache-unauthorized-ttl",
            "authorization-webhook-config-file",
            "authorization-webhook-version",
        ],
    ),
    ("API enablement", &["runtime-config"]),
    ("Egress selector", &["egress-selector-config-file"]),
    (
        "Admission",
        &[
            "admission-control",
            "admission-control-config-file",
            "default-not-ready-toleration-seconds",
            "default-unreachable-toleration-seconds",
            "disable-admission-plugins",
            "enable-admission-plugins",
        ],
    ),
    (
        "Metrics",
        &[
            "allow-metric-labels",
            "allow-metric-labels-manifest",
            "disabled-metrics",
            "show-hidden-metrics-for-version",
        ],
    ),
    (
        "Logs",
        &[
            "log-flush-frequency",
            "log-json-info-buffer-size",
            "log-json-split-stream",
            "log-text-info-buffer-size",
            "log-text-split-stream",
            "logging-format",
            "v",
            "vmodule",
        ],
    ),
    ("Traces", &["tracing-config-file"]),
    (
        "Misc",
        &[
            "aggregator-reject-forwarding-redirect",
            "allow-privileged",
            "coordinated-leadership-lease-duration",
            "coordinated-leadership-renew-deadline",
            "coordinated-leadership-retry-period",
            "enable-aggregator-routing",
            "enable-logs-handler",
            "endpoint-reconciler-type",
            "event-ttl",
            "kubelet-certificate-authority",
            "kubelet-client-certificate",
            "kubelet-client-key",
            "kubelet-preferred-address-types",
            "kubelet-timeout",
            "kubernetes-service-node-port",
            "max-connection-bytes-per-sec",
            "peer-advertise-ip",
            "peer-advertise-port",
            "peer-ca-file",
            "proxy-client-cert-file",
            "proxy-client-key-file",
            "service-account-signing-endpoint",
            "service-account-signing-key-file",
            "service-cluster-ip-range",
            "service-node-port-range",
        ],
    ),
    ("Global", &["help", "version"]),
];

/// The section of the other flags.
const OWN: &str = "Own";

/// The sections in the order of the help.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|(section, _)| *section).chain([OWN])
}

/// The section of a flag.
pub(super) fn section_of(flag: &str) -> &'static str {
    SECTIONS.iter().find(|(_, flags)| flags.contains(&flag)).map_or(OWN, |(section, _)| section)
}

/// The text of `--help`.
pub(crate) fn help(command: &Command) -> String {
    let name = command.get_name();
    let mut help = head(command, name);
    let _ = writeln!(help, "  {name} COMMAND\n\nCommands:\n");
    let commands: Vec<&Command> = command.get_subcommands().collect();
    let width = commands.iter().map(|command| command.get_name().len()).max().unwrap_or_default();
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(help, "  {:<width$}   {about}", command.get_name());
    }
    write_sections(&mut help, command);
    help
}

/// The text of `--help` of the subcommand that checks the flags of the server.
pub(crate) fn help_of_check(command: &Command, name: &str) -> String {
    let check = command.find_subcommand(name).unwrap_or(command);
    let mut help = head(check, &format!("{} {name}", command.get_name()));
    write_sections(&mut help, command);
    help
}

/// The description of a command and its usage.
fn head(command: &Command, usage: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("{about}\n\nUsage:\n  {usage} [flags]\n")
}

/// The flags of the server.
fn write_sections(help: &mut String, command: &Command) {
    let args: Vec<&Arg> = command.get_arguments().collect();
    for (section, names) in SECTIONS {
        let is_here = |arg: &&&Arg| names.contains(&arg.get_id().as_str());
        write_section(help, section, args.iter().filter(is_here).copied().collect());
    }
    let is_own = |arg: &&&Arg| SECTIONS.iter().all(|(_, names)| !names.contains(&arg.get_id().as_str()));
    write_section(help, OWN, args.iter().filter(is_own).copied().collect());
}

fn write_section(help: &mut String, section: &str, mut args: Vec<&Arg>) {
    if args.is_empty() {
        return;
    }
    args.sort_by_key(|arg| arg.get_id().to_string());
    let lines: Vec<(String, &Arg)> = args.into_iter().map(|arg| (usage(arg), arg)).collect();
    let width = lines.iter().map(|(usage, _)| usage.chars().count()).max().unwrap_or_default();
    let _ = writeln!(help, "\n{section} flags:\n");
    for (usage, arg) in lines {
        let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(help, "{usage:<width$}   {text}");
    }
}

/// The flag and the name of its value.
fn usage(arg: &Arg) -> String {
    let short = arg.get_short().map_or_else(|| "      ".to_owned(), |letter| format!("  -{letter}, "));
    let long = arg.get_long().unwrap_or_default();
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    match value {
        // A switch without a value is on.
        Some(value) if value == "BOOL" => format!("{short}--{long}"),
        Some(value) => format!("{short}--{long} {value}"),
        None => format!("{short}--{long}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;

    #[test]
    fn flags_stand_in_the_section_of_the_reference() {
        let help = help(&command());
        let section = |title: &str| {
            let (_, rest) = help.split_once(&format!("\n{title} flags:\n\n")).unwrap();
            rest.split("\n\n").next().unwrap_or_default().to_owned()
        };
        assert!(section("Etcd").contains("\n      --etcd-servers URL,…"));
        assert!(section("Global").contains("  -h, --help"));
        assert!(section("Own").contains("      --data-dir DIR"));
        assert!(section("Generic").contains("--feature-gates"));
        assert!(!section("Generic").contains("--etcd-servers"));
    }
}
