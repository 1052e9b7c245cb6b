//! Tests the spans that the binary exports to a collector.

use crate::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{AdmittingWebhook, Config, Etcd, Server, wait_for};
use pintle_trace_collector::{Export, Span, collect};
use serde_json::json;
use std::fs;
use tokio::{runtime::Runtime, sync::mpsc::UnboundedReceiver};

const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A collector of traces on threads of its own, and the spans of the trace that it has got so far.
struct Collector {
    _runtime: Runtime,
    exports: UnboundedReceiver<Export>,
    spans: Vec<Span>,
}

impl Collector {
    /// Starts a collector, and adds the flag that sends a part of the requests to it, per million.
    fn start(config: Config, directory: &tempfile::TempDir, rate: u32) -> Result<(Collector, Config)> {
        let runtime = Runtime::new()?;
        let (endpoint, exports) = runtime.block_on(collect())?;
        let file = directory.path().join("traces.yaml");
        fs::write(
            &file,
            format!(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {endpoint}\n\
                 samplingRatePerMillion: {rate}\n"
            ),
        )?;
        let config = config.flag(format!("--tracing-config-file={}", file.display()));
        Ok((Collector { _runtime: runtime, exports, spans: Vec::new() }, config))
    }

    /// Waits for a span of the trace.
    fn wait_for(&mut self, name: &str) -> Result<Span> {
        self.wait_for_span(name, |span| span.name == name)
    }

    fn wait_for_span(&mut self, what: &str, is_it: impl Fn(&Span) -> bool) -> Result<Span> {
        let spans = &mut self.spans;
        let found = wait_for(&format!("the span {what}"), PATIENCE, || {
            while let Ok(export) = self.exports.try_recv() {
                let scopes = export.resources.into_iter().flat_map(|resource| resource.scopes);
                spans.extend(
                    scopes.flat_map(|scope| scope.spans).filter(|span| span.trace == TRACE.to_be_bytes()),
                );
            }
            spans.iter().find(|span| is_it(span)).cloned()
        });
        found.map_err(|error| {
            let names: Vec<&str> = self.spans.iter().map(|span| span.name.as_str()).collect();
            format!("{error}; there are {names:?}").into()
        })
    }

    /// The names of the spans above a span, the root last. A parent is exported after its children.
    fn path_of(&mut self, name: &str) -> Result<Vec<String>> {
        let mut span = self.wait_for(name)?;
        let mut path = Vec::new();
        while span.parent != PARENT.to_be_bytes() {
            let parent = span.parent.clone();
            span = self.wait_for_span(&format!("parent of {}", span.name), |other| other.id == parent)?;
            path.push(span.name.clone());
        }
        Ok(path)
    }
}

const PARENT: u64 = 0x00f0_67aa_0ba9_02b7;
const ROOT: &str = "POST /api/v1/namespaces/{:namespace}/configmaps";

#[test]
fn a_write_has_spans_of_filters_webhooks_and_storage() -> Result {
    let (directory, etcd, webhook) = (tempfile::tempdir()?, Etcd::start(1)?, AdmittingWebhook::start()?);
    let config = config()?.flag(format!("--etcd-servers={}", etcd.urls()));
    // Nothing is sampled without a parent.
    let (mut collector, config) = Collector::start(config, &directory, 0)?;
    let server = Server::start(config)?;
    let client = server.client()?;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "traced"},
        "webhooks": [{
            "name": "traced.example.com",
            "clientConfig": {"url": webhook.url(), "caBundle": STANDARD.encode(webhook.certificate())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(client.post(path, &configuration)?.status, 201);
    let create = |name: &str, headers: &[(&str, &str)]| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).to_string();
        let headers = [&[("content-type", "application/json")], headers].concat();
        client.request("POST", CONFIG_MAPS, &headers, body.as_bytes())
    };
    // The configuration is in force when the webhook is called.
    let mut number = 0;
    wait_for("a call of the webhook", PATIENCE, || {
        number += 1;
        create(&format!("before-{number}"), &[]).ok()?;
        (webhook.calls() > 0).then_some(())
    })?;
    let traceparent = format!("00-{TRACE:032x}-{PARENT:016x}-01");
    assert_eq!(create("traced", &[("traceparent", &traceparent)])?.status, 201);

    let root = collector.wait_for(ROOT)?;
    assert_eq!(root.parent, PARENT.to_be_bytes());
    for filter in ["constrainedimpersonation", "authorization", "priorityandfairness"] {
        assert_eq!(collector.path_of(filter)?, [ROOT], "{filter}");
    }
    assert_eq!(collector.path_of("Create")?, [ROOT]);
    assert_eq!(collector.path_of("Call validating webhook")?, ["Create", ROOT]);
    assert_eq!(collector.path_of("HTTP POST")?, ["Call validating webhook", "Create", ROOT]);
    let stored = collector.path_of("etcdserverpb.KV/Txn")?;
    assert_eq!(stored.last().map(String::as_str), Some(ROOT), "{stored:?}");
    for span in &collector.spans {
        assert!(root.start <= span.start && span.end <= root.end, "{span:?}");
    }
    Ok(())
}

#[test]
fn requests_are_sampled_at_the_configured_rate_and_exported_at_the_end() -> Result {
    let directory = tempfile::tempdir()?;
    let (mut collector, config) = Collector::start(config()?, &directory, 1_000_000)?;
    let mut server = Server::start(config)?;
    let parent = format!("00-{TRACE:032x}-{PARENT:016x}-01");
    let answer = server.client()?.request("GET", "/api/v1/nodes", &[("traceparent", &parent)], b"")?;
    assert_eq!(answer.status, 200);
    server.terminate()?;
    server.wait_for_end()?;
    assert_eq!(collector.path_of("List")?, ["GET /api/v1/nodes"]);
    Ok(())
}
