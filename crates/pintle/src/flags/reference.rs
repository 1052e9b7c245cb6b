//! Reads every flag of kube-apiserver.

use super::{command, command_line, help::SECTIONS, read};
use std::{collections::BTreeSet, ffi::OsString};

/// Each flag of kube-apiserver that has a value, with one that is not the default.
const FLAGS: [(&str, &str); 172] = [
    ("admission-control", "AlwaysAdmit"),
    ("admission-control-config-file", "/admission-control-config-file"),
    ("advertise-address", "10.20.30.40"),
    ("aggregator-reject-forwarding-redirect", "false"),
    ("allow-metric-labels", "apiserver_request_total,verb=GET"),
    ("allow-metric-labels-manifest", "/allow-metric-labels-manifest"),
    ("allow-privileged", "false"),
    ("anonymous-auth", "false"),
    ("api-audiences", "https://a,https://b"),
    ("audit-log-batch-buffer-size", "7"),
    ("audit-log-batch-max-size", "7"),
    ("audit-log-batch-max-wait", "7s"),
    ("audit-log-batch-throttle-burst", "7"),
    ("audit-log-batch-throttle-enable", "true"),
    ("audit-log-batch-throttle-qps", "1.5"),
    ("audit-log-compress", "true"),
    ("audit-log-format", "legacy"),
    ("audit-log-maxage", "7"),
    ("audit-log-maxbackup", "7"),
    ("audit-log-maxsize", "7"),
    ("audit-log-mode", "batch"),
    ("audit-log-path", "/audit-log-path"),
    ("audit-log-truncate-enabled", "true"),
    ("audit-log-truncate-max-batch-size", "7"),
    ("audit-log-truncate-max-event-size", "7"),
    ("audit-log-version", "audit.k8s.io/v1"),
    ("audit-policy-file", "/audit-policy-file"),
    ("audit-webhook-batch-buffer-size", "7"),
    ("audit-webhook-batch-max-size", "7"),
    ("audit-webhook-batch-max-wait", "7s"),
    ("audit-webhook-batch-throttle-burst", "7"),
    ("audit-webhook-batch-throttle-enable", "false"),
    ("audit-webhook-batch-throttle-qps", "1.5"),
    ("audit-webhook-config-file", "/audit-webhook-config-file"),
    ("audit-webhook-initial-backoff", "7s"),
    ("audit-webhook-mode", "blocking"),
    ("audit-webhook-truncate-enabled", "true"),
    ("audit-webhook-truncate-max-batch-size", "7"),
    ("audit-webhook-truncate-max-event-size", "7"),
    ("audit-webhook-version", "audit.k8s.io/v1"),
    ("authentication-config", "/authentication-config"),
    ("authentication-token-webhook-cache-ttl", "7s"),
    ("authentication-token-webhook-config-file", "/authentication-token-webhook-config-file"),
    ("authentication-token-webhook-version", "v1"),
    ("authorization-config", "/authorization-config"),
    ("authorization-mode", "Node,RBAC,Webhook"),
    ("authorization-policy-file", "/authorization-policy-file"),
    ("authorization-webhook-cache-authorized-ttl", "7s"),
    ("authorization-webhook-cache-unauthorized-ttl", "7s"),
    ("authorization-webhook-config-file", "/authorization-webhook-config-file"),
    ("authorization-webhook-version", "v1"),
    ("bind-address", "127.0.0.1"),
    ("cert-dir", "/cert-dir"),
    ("client-ca-file", "/client-ca-file"),
    ("contention-profiling", "true"),
    ("coordinated-leadership-lease-duration", "7s"),
    ("coordinated-leadership-renew-deadline", "7s"),
    ("coordinated-leadership-retry-period", "7s"),
    ("cors-allowed-origins", "//example.com(:|$)"),
    ("debug-socket-path", "/debug-socket-path"),
    ("default-not-ready-toleration-seconds", "7"),
    ("default-unreachable-toleration-seconds", "7"),
    ("delete-collection-workers", "7"),
    ("disable-admission-plugins", "ServiceAccount"),
    ("disable-http2-serving", "true"),
    ("disabled-metrics", "apiserver_request_total"),
    ("egress-selector-config-file", "/egress-selector-config-file"),
    ("emulated-version", "1.35"),
    ("emulation-forward-compatible", "true"),
    ("enable-admission-plugins", "NodeRestriction"),
    ("enable-aggregator-routing", "true"),
    ("enable-bootstrap-token-auth", "true"),
    ("enable-garbage-collector", "false"),
    ("enable-logs-handler", "true"),
    ("enable-priority-and-fairness", "false"),
    ("encryption-provider-config", "/encryption-provider-config"),
    ("encryption-provider-config-automatic-reload", "true"),
    ("endpoint-reconciler-type", "none"),
    ("etcd-cafile", "/etcd-cafile"),
    ("etcd-certfile", "/etcd-certfile"),
    ("etcd-compaction-interval", "7s"),
    ("etcd-count-metric-poll-period", "7s"),
    ("etcd-db-metric-poll-interval", "7s"),
    ("etcd-healthcheck-timeout", "7s"),
    ("etcd-keyfile", "/etcd-keyfile"),
    ("etcd-prefix", "/other"),
    ("etcd-readycheck-timeout", "7s"),
    ("etcd-servers", "http://127.0.0.1:2379"),
    ("etcd-servers-overrides", "/events#http://127.0.0.1:2381;http://127.0.0.1:2382"),
    ("event-ttl", "7s"),
    ("external-hostname", "api.example.com"),
    ("feature-gates", "AllAlpha=false,kube:AllBeta=true"),
    ("goaway-chance", "0.01"),
    ("http2-max-streams-per-connection", "7"),
    ("kubelet-certificate-authority", "/kubelet-certificate-authority"),
    ("kubelet-client-certificate", "/kubelet-client-certificate"),
    ("kubelet-client-key", "/kubelet-client-key"),
    ("kubelet-preferred-address-types", "InternalIP,Hostname"),
    ("kubelet-timeout", "7s"),
    ("kubernetes-service-node-port", "30443"),
    ("lease-reuse-duration-seconds", "7"),
    ("livez-grace-period", "7s"),
    ("log-flush-frequency", "7s"),
    ("log-json-info-buffer-size", "4Ki"),
    ("log-json-split-stream", "true"),
    ("log-text-info-buffer-size", "4Ki"),
    ("log-text-split-stream", "true"),
    ("logging-format", "json"),
    ("max-connection-bytes-per-sec", "7"),
    ("max-mutating-requests-inflight", "7"),
    ("max-requests-inflight", "7"),
    ("min-compatibility-version", "1.35"),
    ("min-request-timeout", "7"),
    ("oidc-ca-file", "/oidc-ca-file"),
    ("oidc-client-id", "client"),
    ("oidc-groups-claim", "other"),
    ("oidc-groups-prefix", "other"),
    ("oidc-issuer-url", "https://issuer.example.com"),
    ("oidc-required-claim", "group=admins"),
    ("oidc-signing-algs", "ES256"),
    ("oidc-username-claim", "email"),
    ("oidc-username-prefix", "other"),
    ("peer-advertise-ip", "10.20.30.40"),
    ("peer-advertise-port", "6443"),
    ("peer-ca-file", "/peer-ca-file"),
    ("permit-address-sharing", "true"),
    ("permit-port-sharing", "true"),
    ("profiling", "false"),
    ("proxy-client-cert-file", "/proxy-client-cert-file"),
    ("proxy-client-key-file", "/proxy-client-key-file"),
    ("request-timeout", "7s"),
    ("requestheader-allowed-names", "X-Other"),
    ("requestheader-client-ca-file", "/requestheader-client-ca-file"),
    ("requestheader-extra-headers-prefix", "X-Other"),
    ("requestheader-group-headers", "X-Other"),
    ("requestheader-uid-headers", "X-Other"),
    ("requestheader-username-headers", "X-Other"),
    ("runtime-config", "api/beta=true,apps/v1=false"),
    ("runtime-config-emulation-forward-compatible", "true"),
    ("secure-port", "8443"),
    ("send-retry-after-while-not-ready-once", "true"),
    ("service-account-extend-token-expiration", "false"),
    ("service-account-issuer", "https://issuer.example.com"),
    ("service-account-jwks-uri", "https://issuer.example.com/keys"),
    ("service-account-key-file", "/service-account-key-file"),
    ("service-account-lookup", "false"),
    ("service-account-max-token-expiration", "7s"),
    ("service-account-signing-endpoint", "/service-account-signing-endpoint"),
    ("service-account-signing-key-file", "/service-account-signing-key-file"),
    ("service-cluster-ip-range", "10.96.0.0/16,fd00::/112"),
    ("service-node-port-range", "20000-20100"),
    ("show-hidden-metrics-for-version", "1.35"),
    ("shutdown-delay-duration", "7s"),
    ("shutdown-send-retry-after", "true"),
    ("shutdown-watch-termination-grace-period", "7s"),
    ("storage-backend", "etcd3"),
    ("storage-initialization-timeout", "7s"),
    ("storage-media-type", "application/json"),
    ("strict-transport-security-directives", "max-age=31536000,includeSubDomains"),
    ("tls-cert-file", "/tls-cert-file"),
    ("tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("tls-curve-preferences", "29,23"),
    ("tls-min-version", "VersionTLS13"),
    ("tls-private-key-file", "/tls-private-key-file"),
    ("tls-sni-cert-key", "/certificate,/key:*.example.com"),
    ("token-auth-file", "/token-auth-file"),
    ("tracing-config-file", "/tracing-config-file"),
    ("v", "4"),
    ("version", "raw"),
    ("vmodule", "serving=4,registry*=5"),
    ("watch-cache", "false"),
    ("watch-cache-sizes", "pods#100,deployments.apps#0"),
];

/// Flags whose value cannot differ from the default.
const FIXED: [&str; 2] = ["audit-log-version", "audit-webhook-version"];
/// Flags that are not there yet.
const PENDING: &[&str] = &["peer-advertise-ip", "peer-advertise-port", "peer-ca-file"];

/// The options, printed.
fn options(arguments: &[String]) -> Result<String, String> {
    let arguments = arguments.iter().map(OsString::from);
    let matches = command_line::parse(&command(), "kube-apiserver", arguments);
    matches.map(|matches| format!("{:#?}", read(&matches).options)).map_err(|refusal| format!("{refusal:?}"))
}

#[test]
fn every_flag_of_kube_apiserver_changes_the_options() {
    let defaults = options(&[]).unwrap();
    let mut wrong = Vec::new();
    for (flag, value) in FLAGS {
        for name in [flag.to_owned(), flag.replace('-', "_")] {
            match options(&[format!("--{name}={value}")]) {
                Err(refusal) if PENDING.contains(&flag) && refusal.contains("unknown flag") => {}
                Err(refusal) => wrong.push(format!("--{name}={value}: {refusal}")),
                Ok(options) if (options == defaults) == FIXED.contains(&flag) => {}
                Ok(_) => wrong.push(format!("--{name}={value} is ignored, or listed as if it were")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_help_has_every_flag_of_kube_apiserver_in_a_section() {
    let own: BTreeSet<&str> = FLAGS.iter().map(|(name, _)| *name).chain(["help"]).collect();
    let listed: Vec<&str> = SECTIONS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert_eq!(listed.len(), own.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), own);
}
