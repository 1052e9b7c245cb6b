//! The metrics that the API server's rules and dashboard of kube-prometheus evaluate
//! (<https://github.com/prometheus-operator/kube-prometheus>): names, label names, and label values that are selected.

/// A metric in expressions.
pub(super) struct Evaluated {
    pub(super) name: &'static str,
    /// The labels that expressions select or group by.
    pub(super) labels: &'static [&'static str],
    /// Matchers of label values in expressions.
    pub(super) selected: &'static [&'static str],
}

const fn metric(
    name: &'static str,
    labels: &'static [&'static str],
    selected: &'static [&'static str],
) -> Evaluated {
    Evaluated { name, labels, selected }
}

const READS: &str = "verb=~\"LIST|GET\"";
const WRITES: &str = "verb=~\"POST|PUT|PATCH|DELETE\"";
const NO_STREAM: &str = "subresource!~\"proxy|attach|log|exec|portforward\"";
const SLI: &str = "apiserver_request_sli_duration_seconds_bucket";
const SLI_COUNT: &str = "apiserver_request_sli_duration_seconds_count";
const SLI_LABELS: &[&str] = &["verb", "scope", "subresource", "resource", "le"];
const TOTAL_LABELS: &[&str] = &["verb", "code", "resource"];

pub(super) const EVALUATED: &[Evaluated] = &[
    // Alerts of the API server.
    metric("apiserver_client_certificate_expiration_seconds_bucket", &["le"], &[]),
    metric("apiserver_client_certificate_expiration_seconds_count", &[], &[]),
    metric("aggregator_unavailable_apiservice_total", &["name", "reason"], &[]),
    metric("aggregator_unavailable_apiservice", &["name"], &[]),
    metric("apiserver_request_terminations_total", &[], &[]),
    metric("apiserver_request_total", &[], &[]),
    metric("rest_client_requests_total", &["code"], &[]),
    // Availability and error budgets.
    metric("apiserver_request_total", TOTAL_LABELS, &[READS, "code=~\"2..\""]),
    metric("apiserver_request_total", TOTAL_LABELS, &[READS, "code=~\"4..\""]),
    metric("apiserver_request_total", TOTAL_LABELS, &[READS, "code=~\"5..\""]),
    metric("apiserver_request_total", TOTAL_LABELS, &[WRITES, "code=~\"2..\""]),
    metric(SLI_COUNT, &["verb", "subresource"], &[READS, NO_STREAM]),
    metric(SLI_COUNT, &["verb", "subresource"], &[WRITES, NO_STREAM]),
    metric(SLI, SLI_LABELS, &[READS, NO_STREAM, "scope=~\"resource|\"", "le=~\"1(\\\\.0)?\""]),
    metric(SLI, SLI_LABELS, &[READS, NO_STREAM, "scope=\"namespace\"", "le=~\"5(\\\\.0)?\""]),
    metric(SLI, SLI_LABELS, &[READS, NO_STREAM, "scope=\"cluster\"", "le=~\"30(\\\\.0)?\""]),
    metric(SLI, SLI_LABELS, &[WRITES, NO_STREAM, "le=~\"1(\\\\.0)?\""]),
    metric(SLI, SLI_LABELS, &["le=\"+Inf\""]),
    // The dashboard.
    metric("workqueue_adds_total", &["name"], &[]),
    metric("workqueue_depth", &["name"], &[]),
    metric("workqueue_queue_duration_seconds_bucket", &["name", "le"], &[]),
    metric("process_resident_memory_bytes", &[], &[]),
    metric("process_cpu_seconds_total", &[], &[]),
    // A series that the collection drops, by the text of its bounds.
    metric("apiserver_request_body_size_bytes_bucket", &["le"], &["le=\"1.15e+06\""]),
];

/// The metrics of expressions that have no counterpart in this server, and why.
pub(super) const ABSENT: &[(&str, &str)] = &[("go_goroutines", "this server is no Go program")];
