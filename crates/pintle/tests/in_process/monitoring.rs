//! Tests what monitoring needs: the metrics that common rules and dashboards of the API server name, with their labels.

use crate::harness::Server;

/// The metrics that the rules and the dashboard of kube-prometheus evaluate, with the labels that they select or sum by.
/// Not among them: `go_goroutines`, which has no counterpart here, and metrics that exist from their first event on: of
/// requests to webhooks, and of API services that are not available. The end-to-end test with a real Prometheus has those.
const EVALUATED: [(&str, &[&str]); 14] = [
    ("apiserver_request_sli_duration_seconds_bucket", &["le", "verb", "scope", "resource", "subresource"]),
    ("apiserver_request_sli_duration_seconds_count", &["verb", "scope", "resource", "subresource"]),
    ("apiserver_request_duration_seconds_bucket", &["le", "verb", "scope", "resource", "subresource"]),
    ("apiserver_request_total", &["code", "verb", "resource"]),
    ("process_resident_memory_bytes", &[]),
    ("process_cpu_seconds_total", &[]),
    ("process_start_time_seconds", &[]),
    ("apiserver_client_certificate_expiration_seconds_bucket", &["le"]),
    ("apiserver_client_certificate_expiration_seconds_count", &[]),
    ("apiserver_request_terminations_total", &["code"]),
    ("kubernetes_build_info", &["git_version"]),
    ("workqueue_adds_total", &["name"]),
    ("workqueue_depth", &["name"]),
    ("workqueue_queue_duration_seconds_bucket", &["le", "name"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_dashboards_find_their_metrics() {
    let server = Server::start().await;
    server.until_ready().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for request in [
        format!("POST {maps}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"),
        format!("GET {maps}/a"),
        format!("GET {maps}/none"),
        format!("GET {maps}"),
        "GET /api/v1/configmaps".to_owned(),
        "GET /readyz".to_owned(),
        "GET /api/v1/nodes?timeout=1ns".to_owned(),
        "GET /api/v1/componentstatuses".to_owned(),
        "POST /api/v1/namespaces/default/services\n\n{\"metadata\":{\"name\":\"s\"},\"spec\":{\"type\":\"NodePort\",\"ports\":[{\"port\":80,\"nodePort\":30001}]}}".to_owned(),
        "POST /api/v1/namespaces/default/services\n\n{\"metadata\":{\"name\":\"t\"},\"spec\":{\"type\":\"NodePort\",\"ports\":[{\"port\":80,\"nodePort\":30001}]}}".to_owned(),
        format!(
            "GET {maps}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        ),
    ] {
        server.send(&request).await;
    }
    let answer = server.send("GET /metrics").await;
    let text = answer.text();
    for (name, labels) in EVALUATED {
        let found = text.lines().any(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| labels.iter().all(|label| rest.contains(&format!("{label}=\""))))
        });
        assert!(found, "{name} {labels:?}");
    }
    let route = "group=\"\",resource=\"configmaps\"";
    for expected in [
        format!("apiserver_request_total{{code=\"404\",component=\"apiserver\",dry_run=\"\",{route},scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"}} 1"),
        format!("apiserver_request_total{{code=\"201\",component=\"apiserver\",dry_run=\"\",{route},scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"}} 1"),
        format!("apiserver_response_sizes_count{{component=\"apiserver\",{route},scope=\"namespace\",subresource=\"\",verb=\"LIST\",version=\"v1\"}} 1"),
        format!("apiserver_response_sizes_count{{component=\"apiserver\",{route},scope=\"cluster\",subresource=\"\",verb=\"LIST\",version=\"v1\"}} 1"),
        format!("apiserver_request_body_size_bytes_count{{{route},verb=\"create\"}} 1"),
        format!("apiserver_watch_list_duration_seconds_count{{{route},scope=\"namespace\",version=\"v1\"}} 1"),
        "apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"componentstatuses\",subresource=\"\",version=\"v1\"} 1".to_owned(),
        "apiserver_request_total{code=\"200\",component=\"\",dry_run=\"\",group=\"\",resource=\"\",scope=\"\",subresource=\"/readyz\",verb=\"GET\",version=\"\"}".to_owned(),
        "# HELP apiserver_request_total [STABLE] ".to_owned(),
        "apiserver_request_body_size_bytes_bucket{group=\"\",resource=\"configmaps\",verb=\"create\",le=\"1.05e+06\"} 1".to_owned(),
        "kube_apiserver_clusterip_allocator_allocation_total{cidr=\"10.0.0.0/24\",scope=\"dynamic\"} ".to_owned(),
        "kube_apiserver_clusterip_allocator_allocated_ips{cidr=\"10.0.0.0/24\"} ".to_owned(),
        "kube_apiserver_clusterip_allocator_available_ips{cidr=\"10.0.0.0/24\"} ".to_owned(),
        "kube_apiserver_nodeport_allocator_allocation_total{scope=\"static\"} ".to_owned(),
        "kube_apiserver_nodeport_allocator_allocation_errors_total{scope=\"static\"} ".to_owned(),
        "apiserver_request_post_timeout_total{source=\"timeout-handler\",status=\"ok\"} 1\n".to_owned(),
        "apiserver_request_timestamp_comparison_time_count{code_path=\"unequal_objects_".to_owned(),
    ] {
        assert!(text.contains(&expected), "no {expected}");
    }
    let slis = server.send("GET /metrics/slis").await;
    assert!(slis.text().contains("kubernetes_healthcheck{name=\"ping\",type=\"readyz\"} 1\n"));
    let compressed = server.send("GET /metrics\nAccept-Encoding: gzip").await;
    assert_eq!(compressed.header("content-encoding"), "gzip");
    server.stop().await;
}
