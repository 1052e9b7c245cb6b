//! Tests monitoring with a real Prometheus: it scrapes a server that has been used, in both formats, and has the series
//! that the rules and the dashboard of kube-prometheus evaluate.

mod evaluated;
mod prometheus;

use crate::{Result, own_network::in_network};
use base64::{Engine, engine::general_purpose::STANDARD};
use evaluated::{ABSENT, EVALUATED, Evaluated};
use pintle_e2e::{Cli, PATIENCE, config, variable};
use pintle_harness::{AdmittingWebhook, Client, ExtensionServer, Server, wait_for};
use prometheus::Prometheus;
use serde_json::json;
use std::path::PathBuf;

#[test]
fn prometheus_has_the_series_of_common_rules_and_dashboards() -> Result {
    in_network("monitoring::prometheus_has_the_series_of_common_rules_and_dashboards", || {
        let server = Server::start(config()?.flag("--enable-aggregator-routing"))?;
        let webhook = AdmittingWebhook::start()?;
        load(&server, &webhook)?;
        // Native histograms are scraped as protobuf.
        for (directory, features) in [("text", None), ("protobuf", Some("native-histograms"))] {
            let prometheus = Prometheus::start(&server, directory, features)?;
            for job in ["apiserver", "slis"] {
                wait_for(&format!("the scrape of {job}"), PATIENCE, || {
                    let up = format!("up{{job=\"{job}\"}} == 1");
                    (prometheus.count(&up).ok()? == 1).then_some(())
                })?;
            }
            for series in EVALUATED {
                check(&prometheus, series)?;
            }
            for (name, _why) in ABSENT {
                assert_eq!(
                    prometheus.count(&format!("{name}{{job=\"apiserver\"}}"))?,
                    0,
                    "{name} has a counterpart now"
                );
            }
            for healthy in ["livez", "readyz"] {
                let query =
                    format!("kubernetes_healthcheck{{job=\"slis\",name=\"ping\",type=\"{healthy}\"}} == 1");
                assert_eq!(prometheus.count(&query)?, 1, "{query}");
            }
            prometheus.stop()?;
        }
        check_labels(&server.client()?)
    })
}

/// Finds the series of an expression, by the label values that it selects.
fn check(prometheus: &Prometheus, series: &Evaluated) -> Result {
    let selected: String = series.selected.iter().map(|matcher| format!(",{matcher}")).collect();
    let query = format!("{}{{job=\"apiserver\"{selected}}}", series.name);
    match prometheus.count(&query)? {
        0 => Err(format!("Prometheus has no series for {query}").into()),
        _ => Ok(()),
    }
}

/// Finds the labels of each metric in the text: Prometheus drops labels that are empty.
fn check_labels(client: &Client) -> Result {
    let text = client.get("/metrics")?.text();
    for Evaluated { name, labels, .. } in EVALUATED {
        let found = text.lines().any(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| labels.iter().all(|label| rest.contains(&format!("{label}=\""))))
        });
        assert!(found, "{name} has not the labels {labels:?}");
    }
    Ok(())
}

/// Uses the server so that every metric has a reason to exist.
fn load(server: &Server, webhook: &AdmittingWebhook) -> Result {
    let client = server.client()?;
    let maps = "/api/v1/namespaces/default/configmaps";
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "monitored"},
        "webhooks": [{
            "name": "monitored.example.com",
            "clientConfig": {"url": webhook.url(), "caBundle": STANDARD.encode(webhook.certificate())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(client.post(webhooks, &configuration)?.status, 201);
    let mut number = 0;
    wait_for("a call of the webhook", PATIENCE, || {
        number += 1;
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}")}});
        client.post(maps, &map).ok()?;
        (webhook.calls() > 0).then_some(())
    })?;
    // kubectl identifies itself by a certificate.
    let kubectl = Cli::kubectl(server)?;
    for command in [
        "get configmaps --all-namespaces",
        "get configmap m1",
        "label configmap m1 a=b",
        "delete configmap m1",
    ] {
        kubectl.run(&command.split(' ').collect::<Vec<_>>())?;
    }
    for path in [maps, "/livez", "/readyz"] {
        assert_eq!(client.get(path)?.status, 200, "{path}");
    }
    assert_eq!(client.get(&format!("{maps}/none"))?.status, 404);
    assert_eq!(client.get("/api/v1/nodes?timeout=1ns")?.status, 504);
    fail_to_convert(&client)?;
    let binary = PathBuf::from(variable("PINTLE_EXTENSION_SERVER")?);
    drop(ExtensionServer::start(&binary, server, &[])?);
    wait_for("the API service to be unavailable", PATIENCE, || {
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}", ExtensionServer::API_SERVICE);
        let service = client.get(&path).ok()?.json().ok()?;
        let conditions = service.pointer("/status/conditions")?.as_array()?.clone();
        conditions.iter().any(|one| one["type"] == "Available" && one["status"] == "False").then_some(())
    })
}

/// Lists custom resources in a version whose conversion webhook does not exist: a read with an error of the server.
fn fail_to_convert(client: &Client) -> Result {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version =
        |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "flunders.example.com"},
        "spec": {
            "group": "example.com", "names": {"kind": "Flunder", "plural": "flunders"}, "scope": "Cluster",
            "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
            }},
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.post(definitions, &definition)?.status, 201);
    let object = json!({"apiVersion": "example.com/v1", "kind": "Flunder", "metadata": {"name": "one"}});
    wait_for("the definition to be served", PATIENCE, || {
        let answer = client.post("/apis/example.com/v1/flunders", &object).ok()?;
        (answer.status == 201).then_some(())
    })?;
    assert_eq!(client.get("/apis/example.com/v2/flunders")?.status, 500);
    Ok(())
}
