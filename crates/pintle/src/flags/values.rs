//! The values of all flags as pflag prints them, for `/flagz`, and the defaults for the help.

use clap::{Arg, ArgMatches, Command};
use pintle_go_forms::{
    CsvReader, format_duration, parse_bool, parse_duration, parse_float, parse_integer, quote,
};
use std::{collections::BTreeMap, sync::Arc};

/// The form of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Array,
    Bool,
    Certificates,
    Duration,
    Float,
    Gates,
    Integer,
    Ip,
    List,
    Map,
    Pairs,
    Quantity,
    Range,
    Text,
}

use Kind::{
    Array, Bool, Certificates, Duration, Float, Gates, Integer, Ip, List, Map, Pairs, Quantity, Range, Text,
};

/// The flags of kube-apiserver with the form and the default of their values; "" is the zero value of the form. The flags
/// of this server alone are texts without default.
const FLAGS: &[(&str, Kind, &str)] = &[
    ("admission-control", List, ""),
    ("admission-control-config-file", Text, ""),
    ("advertise-address", Ip, ""),
    ("aggregator-reject-forwarding-redirect", Bool, "true"),
    ("allow-metric-labels", Pairs, ""),
    ("allow-metric-labels-manifest", Text, ""),
    ("allow-privileged", Bool, "true"),
    ("anonymous-auth", Bool, "true"),
    ("api-audiences", List, ""),
    ("apiserver-count", Integer, "1"),
    ("audit-log-batch-buffer-size", Integer, "10000"),
    ("audit-log-batch-max-size", Integer, "1"),
    ("audit-log-batch-max-wait", Duration, ""),
    ("audit-log-batch-throttle-burst", Integer, ""),
    ("audit-log-batch-throttle-enable", Bool, ""),
    ("audit-log-batch-throttle-qps", Float, ""),
    ("audit-log-compress", Bool, ""),
    ("audit-log-format", Text, "json"),
    ("audit-log-maxage", Integer, "366"),
    ("audit-log-maxbackup", Integer, "100"),
    ("audit-log-maxsize", Integer, "100"),
    ("audit-log-mode", Text, "blocking"),
    ("audit-log-path", Text, ""),
    ("audit-log-truncate-enabled", Bool, ""),
    ("audit-log-truncate-max-batch-size", Integer, "10485760"),
    ("audit-log-truncate-max-event-size", Integer, "102400"),
    ("audit-log-version", Text, "audit.k8s.io/v1"),
    ("audit-policy-file", Text, ""),
    ("audit-webhook-batch-buffer-size", Integer, "10000"),
    ("audit-webhook-batch-initial-backoff", Duration, "10s"),
    ("audit-webhook-batch-max-size", Integer, "400"),
    ("audit-webhook-batch-max-wait", Duration, "30s"),
    ("audit-webhook-batch-throttle-burst", Integer, "15"),
    ("audit-webhook-batch-throttle-enable", Bool, "true"),
    ("audit-webhook-batch-throttle-qps", Float, "10"),
    ("audit-webhook-config-file", Text, ""),
    ("audit-webhook-initial-backoff", Duration, "10s"),
    ("audit-webhook-mode", Text, "batch"),
    ("audit-webhook-truncate-enabled", Bool, ""),
    ("audit-webhook-truncate-max-batch-size", Integer, "10485760"),
    ("audit-webhook-truncate-max-event-size", Integer, "102400"),
    ("audit-webhook-version", Text, "audit.k8s.io/v1"),
    ("authentication-config", Text, ""),
    ("authentication-token-webhook-cache-ttl", Duration, "2m0s"),
    ("authentication-token-webhook-config-file", Text, ""),
    ("authentication-token-webhook-version", Text, "v1beta1"),
    ("authorization-config", Text, ""),
    ("authorization-mode", List, ""),
    ("authorization-policy-file", Text, ""),
    ("authorization-webhook-cache-authorized-ttl", Duration, "5m0s"),
    ("authorization-webhook-cache-unauthorized-ttl", Duration, "30s"),
    ("authorization-webhook-config-file", Text, ""),
    ("authorization-webhook-version", Text, "v1beta1"),
    ("bind-address", Ip, "0.0.0.0"),
    ("cert-dir", Text, ""),
    ("client-ca-file", Text, ""),
    ("contention-profiling", Bool, ""),
    ("coordinated-leadership-lease-duration", Duration, "15s"),
    ("coordinated-leadership-renew-deadline", Duration, "10s"),
    ("coordinated-leadership-retry-period", Duration, "2s"),
    ("cors-allowed-origins", List, ""),
    ("debug-socket-path", Text, ""),
    ("default-not-ready-toleration-seconds", Integer, "300"),
    ("default-unreachable-toleration-seconds", Integer, "300"),
    ("default-watch-cache-size", Integer, "100"),
    ("delete-collection-workers", Integer, "1"),
    ("disable-admission-plugins", List, ""),
    ("disable-http2-serving", Bool, ""),
    ("disabled-metrics", List, ""),
    ("egress-selector-config-file", Text, ""),
    ("emulated-version", List, ""),
    ("emulation-forward-compatible", Bool, ""),
    ("enable-admission-plugins", List, ""),
    ("enable-aggregator-routing", Bool, ""),
    ("enable-bootstrap-token-auth", Bool, ""),
    ("enable-garbage-collector", Bool, "true"),
    ("enable-logs-handler", Bool, ""),
    ("enable-priority-and-fairness", Bool, "true"),
    ("encryption-provider-config", Text, ""),
    ("encryption-provider-config-automatic-reload", Bool, ""),
    ("endpoint-reconciler-type", Text, "lease"),
    ("etcd-cafile", Text, ""),
    ("etcd-certfile", Text, ""),
    ("etcd-compaction-interval", Duration, "5m0s"),
    ("etcd-count-metric-poll-period", Duration, "1m0s"),
    ("etcd-db-metric-poll-interval", Duration, "30s"),
    ("etcd-healthcheck-timeout", Duration, "2s"),
    ("etcd-keyfile", Text, ""),
    ("etcd-prefix", Text, "/registry"),
    ("etcd-readycheck-timeout", Duration, "2s"),
    ("etcd-servers", List, ""),
    ("etcd-servers-overrides", List, ""),
    ("event-ttl", Duration, "1h0m0s"),
    ("external-hostname", Text, ""),
    ("feature-gates", Gates, ""),
    ("goaway-chance", Float, ""),
    ("help", Bool, ""),
    ("http2-max-streams-per-connection", Integer, ""),
    ("kubelet-certificate-authority", Text, ""),
    ("kubelet-client-certificate", Text, ""),
    ("kubelet-client-key", Text, ""),
    ("kubelet-port", Integer, "10250"),
    ("kubelet-preferred-address-types", List, "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"),
    ("kubelet-read-only-port", Integer, "10255"),
    ("kubelet-timeout", Duration, "5s"),
    ("kubernetes-service-node-port", Integer, ""),
    ("lease-reuse-duration-seconds", Integer, "60"),
    ("livez-grace-period", Duration, ""),
    ("log-flush-frequency", Duration, "5s"),
    ("log-json-info-buffer-size", Quantity, ""),
    ("log-json-split-stream", Bool, ""),
    ("log-text-info-buffer-size", Quantity, ""),
    ("log-text-split-stream", Bool, ""),
    ("logging-format", Text, "text"),
    ("max-connection-bytes-per-sec", Integer, ""),
    ("max-mutating-requests-inflight", Integer, "200"),
    ("max-requests-inflight", Integer, "400"),
    ("min-compatibility-version", List, ""),
    ("min-request-timeout", Integer, "1800"),
    ("oidc-ca-file", Text, ""),
    ("oidc-client-id", Text, ""),
    ("oidc-groups-claim", Text, ""),
    ("oidc-groups-prefix", Text, ""),
    ("oidc-issuer-url", Text, ""),
    ("oidc-required-claim", Map, ""),
    ("oidc-signing-algs", List, "RS256"),
    ("oidc-username-claim", Text, "sub"),
    ("oidc-username-prefix", Text, ""),
    ("peer-advertise-ip", Text, ""),
    ("peer-advertise-port", Text, ""),
    ("peer-ca-file", Text, ""),
    ("permit-address-sharing", Bool, ""),
    ("permit-port-sharing", Bool, ""),
    ("profiling", Bool, "true"),
    ("proxy-client-cert-file", Text, ""),
    ("proxy-client-key-file", Text, ""),
    ("request-timeout", Duration, "1m0s"),
    ("requestheader-allowed-names", List, ""),
    ("requestheader-client-ca-file", Text, ""),
    ("requestheader-extra-headers-prefix", List, ""),
    ("requestheader-group-headers", List, ""),
    ("requestheader-uid-headers", List, ""),
    ("requestheader-username-headers", List, ""),
    ("runtime-config", Map, ""),
    ("runtime-config-emulation-forward-compatible", Bool, ""),
    ("secure-port", Integer, "6443"),
    ("send-retry-after-while-not-ready-once", Bool, ""),
    ("service-account-extend-token-expiration", Bool, "true"),
    ("service-account-issuer", Array, ""),
    ("service-account-jwks-uri", Text, ""),
    ("service-account-key-file", Array, ""),
    ("service-account-lookup", Bool, "true"),
    ("service-account-max-token-expiration", Duration, ""),
    ("service-account-signing-endpoint", Text, ""),
    ("service-account-signing-key-file", Text, ""),
    ("service-cluster-ip-range", Text, "10.0.0.0/24"),
    ("service-node-port-range", Range, "30000-32767"),
    ("show-hidden-metrics-for-version", Text, ""),
    ("shutdown-delay-duration", Duration, ""),
    ("shutdown-send-retry-after", Bool, ""),
    ("shutdown-watch-termination-grace-period", Duration, ""),
    ("storage-backend", Text, ""),
    ("storage-initialization-timeout", Duration, "1m0s"),
    ("storage-media-type", Text, ""),
    ("strict-transport-security-directives", List, ""),
    ("tls-cert-file", Text, ""),
    ("tls-cipher-suites", List, ""),
    ("tls-curve-preferences", List, ""),
    ("tls-min-version", Text, ""),
    ("tls-private-key-file", Text, ""),
    ("tls-sni-cert-key", Certificates, ""),
    ("token-auth-file", Text, ""),
    ("tracing-config-file", Text, ""),
    ("v", Integer, ""),
    ("version", Bool, ""),
    ("vmodule", Text, ""),
    ("watch-cache", Bool, "true"),
    ("watch-cache-sizes", List, ""),
];

/// The value of each flag of a command, given or by default.
pub(super) fn values(command: &Command, matches: &ArgMatches) -> Arc<BTreeMap<String, String>> {
    let names = command.get_arguments().filter_map(|arg| arg.get_long());
    let value = |name: &str| {
        let known = FLAGS.iter().find(|(known, _, _)| *known == name);
        let (kind, default) = known.map_or((Text, ""), |(_, kind, default)| (*kind, *default));
        let raw =
            matches.get_raw(name).map(|values| values.map(|value| value.to_string_lossy().into_owned()));
        let given: Vec<String> = raw.into_iter().flatten().filter(|value| !value.is_empty()).collect();
        match given.as_slice() {
            [] => default_text(kind, default),
            given => text(kind, given),
        }
    };
    Arc::new(names.map(|name| (name.to_owned(), value(name))).collect())
}

/// The flag, whose description ends with the default of its value as in kube-apiserver's help, unless that is the zero
/// value of the form.
pub(super) fn with_default(arg: Arg) -> Arg {
    let known = FLAGS.iter().find(|(known, _, default)| !default.is_empty() && arg.get_id() == known);
    let (Some((_, kind, default)), Some(help)) = (known, arg.get_help()) else { return arg };
    let default = match kind {
        Text => quote(default),
        kind => default_text(*kind, default),
    };
    let help = format!("{help} (default {default})");
    arg.help(help)
}

fn default_text(kind: Kind, default: &str) -> String {
    match (kind, default) {
        (Bool, "") => "false".to_owned(),
        (Integer | Float | Quantity, "") => "0".to_owned(),
        (Duration, "") => "0s".to_owned(),
        (Ip, "") => "<nil>".to_owned(),
        (Array | List | Pairs | Certificates, default) => format!("[{default}]"),
        (_, default) => default.to_owned(),
    }
}

/// The text of the values that were given: of several ones all for lists and maps, else the last.
fn text(kind: Kind, given: &[String]) -> String {
    let last = given.last().map(String::as_str).unwrap_or_default();
    let parts =
        || given.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|part| !part.is_empty());
    let sorted = |mut parts: Vec<String>| {
        parts.sort();
        parts.dedup();
        parts.join(",")
    };
    match kind {
        Bool => parse_bool(last).map_or_else(|| last.to_owned(), |value| value.to_string()),
        Duration => parse_duration(last).map_or_else(|_| last.to_owned(), format_duration),
        Integer => parse_integer(last).map_or_else(|_| last.to_owned(), |value| value.to_string()),
        Float => parse_float(last).map_or_else(|_| last.to_owned(), |value| value.to_string()),
        Ip | Quantity | Range | Text => last.to_owned(),
        Array => list(given),
        List => {
            let fields = given.iter().map(|line| CsvReader::new(line).record().unwrap_or_default());
            list(&fields.flatten().collect::<Vec<_>>())
        }
        Certificates => format!("[{}]", given.join(";")),
        Pairs => format!("[{}]", sorted(given.to_vec())),
        Map => sorted(
            parts()
                .map(|part| if part.contains('=') { part.to_owned() } else { format!("{part}=") })
                .collect(),
        ),
        Gates => sorted(
            parts()
                .map(|part| if part.contains(':') { part.to_owned() } else { format!(":{part}") })
                .collect(),
        ),
    }
}

/// The fields as a CSV line in brackets.
fn list(fields: &[String]) -> String {
    format!("[{}]", fields.iter().map(|field| csv_field(field)).collect::<Vec<_>>().join(","))
}

/// A field of a CSV line, in quotes where it needs them.
fn csv_field(field: &str) -> String {
    match field.contains(['"', ',', '\n', '\r']) || field.starts_with([' ', '\t']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    #[test]
    fn values_are_printed_as_by_pflag() {
        let command = command();
        let values = |arguments: &[&str]| {
            let matches = command.clone().get_matches_from([&["pintle"], arguments].concat());
            values(&command, &matches)
        };
        let default = values(&[]);
        let given = values(&[
            "--anonymous-auth=F",
            "--request-timeout=90s",
            "--goaway-chance=0.01",
            "--max-requests-inflight=7",
            "--etcd-servers=http://a:1,http://b:2",
            "--cors-allowed-origins=//a{1$,2$,\"//b{1,2}$\"",
            "--service-account-issuer=a,b",
            "--http2-max-streams-per-connection=0x10",
            "--runtime-config=b=true,a",
            "--feature-gates=CBORServingAndStorage=true",
            "--bind-address=127.0.0.1",
        ]);
        for (name, by_default, text) in [
            ("anonymous-auth", "true", "false"),
            ("request-timeout", "1m0s", "1m30s"),
            ("goaway-chance", "0", "0.01"),
            ("max-requests-inflight", "400", "7"),
            ("etcd-servers", "[]", "[http://a:1,http://b:2]"),
            ("cors-allowed-origins", "[]", "[//a{1$,2$,\"//b{1,2}$\"]"),
            ("service-account-issuer", "[]", "[\"a,b\"]"),
            ("http2-max-streams-per-connection", "0", "16"),
            ("runtime-config", "", "a=,b=true"),
            ("feature-gates", "", ":CBORServingAndStorage=true"),
            ("bind-address", "0.0.0.0", "127.0.0.1"),
            ("advertise-address", "<nil>", "<nil>"),
            ("audit-log-path", "", ""),
            ("event-ttl", "1h0m0s", "1h0m0s"),
            ("kubelet-port", "10250", "10250"),
            ("v", "0", "0"),
        ] {
            assert_eq!(default.get(name).map(String::as_str), Some(by_default), "{name}");
            assert_eq!(given.get(name).map(String::as_str), Some(text), "{name}");
        }
        assert!(default.contains_key("data-dir"));
    }

    #[test]
    fn descriptions_end_with_defaults() {
        let command = command();
        let check = |name: &str, expected: &str| {
            let arg = command.get_arguments().find(|arg| arg.get_id() == name).unwrap();
            let help = arg.get_help().unwrap().to_string();
            let default = help.split_once(" (default ").map(|(_, default)| default.trim_end_matches(')'));
            assert_eq!(default.unwrap_or_default(), expected, "{name}");
        };
        check("anonymous-auth", "true");
        check("audit-log-compress", "");
        check("audit-webhook-batch-throttle-qps", "10");
        check("bind-address", "0.0.0.0");
        check("data-dir", "");
        check("etcd-prefix", "\"/registry\"");
        check("etcd-servers", "");
        check("event-ttl", "1h0m0s");
        check("goaway-chance", "");
        check("oidc-signing-algs", "[RS256]");
        check("service-node-port-range", "30000-32767");
    }

    #[test]
    fn defaults_are_those_of_the_options() {
        let command = command();
        let values = values(&command, &command.clone().get_matches_from(["pintle"]));
        let options = pintle::Options::default();
        let value = |name: &str| values.get(name).map(String::as_str);
        assert_eq!(value("allow-privileged"), Some(options.allow_privileged.to_string().as_str()));
        assert_eq!(value("service-cluster-ip-range"), Some(options.service_cluster_ip_range.as_str()));
        assert_eq!(value("max-requests-inflight"), Some(options.max_requests_inflight.to_string().as_str()));
        assert_eq!(value("profiling"), Some(options.debugging.profiling.to_string().as_str()));
    }
}
