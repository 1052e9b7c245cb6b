//! `pods/log`: validates the options of a log, and reads it from the kubelet.

use super::{container::choose, log_metrics::PodLogMetrics};
use crate::{
    core::{connecting::read, node::KubeletAddresses},
    field_checks::supported_plain,
};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{ErrorList, FieldError, FieldPath, GroupVersionKind, Status, Value, ValueExt};
use pintle_registry::{
    BoxFuture, ConnectOptions, ConnectService, Connecter, Destination, RequestContext, SubresourceKind,
    Transport, Verb,
};
use std::sync::Arc;

/// Standard output and standard error together, which is the default.
const ALL_STREAMS: &str = "All";

/// The declaration of the subresource. Discovery lists it under the kind of the pod.
pub(super) fn subresource(kubelets: &KubeletAddresses, metrics: Option<&PodLogMetrics>) -> SubresourceKind {
    SubresourceKind::Connect {
        kind: GroupVersionKind::new("", "v1", "Pod"),
        options: ConnectOptions {
            kind: GroupVersionKind::new("", "v1", "PodLogOptions"),
            validate: validate_options,
        },
        verbs: vec![Verb::Get],
        is_proxy: false,
        connecter: Arc::new(PodLog { kubelets: kubelets.clone(), metrics: metrics.cloned() }),
    }
}

/// Reads the log of a container from the kubelet of the pod's node.
struct PodLog {
    kubelets: KubeletAddresses,
    metrics: Option<PodLogMetrics>,
}

impl Connecter for PodLog {
    fn note_untrusted(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.note_untrusted();
        }
    }

    fn connect<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        options: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Destination>, Status>> {
        Box::pin(async move {
            let is_verified = !options.bool_at("insecureSkipTLSVerifyBackend");
            if let Some(metrics) = &self.metrics {
                metrics.note_request(is_verified);
            }
            let pod = read(context, "pods", "pods", context.namespace, context.name).await?;
            let container = choose(&pod, options.str_at("container"))?;
            let node = pod.str_at("spec.nodeName");
            if node.is_empty() {
                return Ok(None);
            }
            let path = format!("/containerLogs/{}/{}/{container}", context.namespace, context.name);
            let kubelet = self.kubelets.find(context, "pods", node).await?;
            Ok(Some(Destination {
                location: kubelet.location(path, parameters(options)),
                transport: if is_verified { Transport::Kubelet } else { Transport::UnverifiedKubelet },
                service: ConnectService::Text { follow: options.bool_at("follow") },
            }))
        })
    }
}

/// The parameters that the kubelet gets: those options that are set.
fn parameters(options: &Value) -> Vec<(&'static str, String)> {
    let switches = ["follow", "previous", "timestamps"].into_iter();
    let switches = switches.filter(|name| options.bool_at(name)).map(|name| (name, "true".to_owned()));
    let numbers = ["sinceSeconds", "tailLines", "limitBytes"].into_iter();
    let numbers = numbers.filter_map(|name| Some((name, options.i64_at(name)?.to_string())));
    let time = options.at("sinceTime").and_then(Value::as_str).map(|time| ("sinceTime", time.to_owned()));
    let stream = splits_streams().then(|| ("stream", stream(options).to_owned()));
    switches.chain(numbers).chain(time).chain(stream).collect()
}

/// Whether a client may ask for one of the streams of a container.
fn splits_streams() -> bool {
    enabled(Gate::PodLogsQuerySplitStreams)
}

/// The stream that the client wants.
fn stream(options: &Value) -> &str {
    options.at("stream").and_then(Value::as_str).unwrap_or(ALL_STREAMS)
}

fn validate_options(options: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut at_least = |name: &str, minimum: i64, detail: &str| {
        if let Some(value) = options.i64_at(name).filter(|value| *value < minimum) {
            errors.push(FieldError::invalid(&FieldPath::new(name), value, detail));
        }
    };
    at_least("tailLines", 0, "must be greater than or equal to 0");
    at_least("limitBytes", 1, "must be greater than 0");
    match options.at("sinceTime").is_some() && options.at("sinceSeconds").is_some() {
        true => {
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden(&FieldPath::new("[]"), detail));
        }
        false => at_least("sinceSeconds", 1, "must be greater than 0"),
    }
    errors.extend(validate_stream(options));
    errors
}

fn validate_stream(options: &Value) -> ErrorList {
    let path = FieldPath::new("stream");
    if !splits_streams() {
        let is_set = options.at("stream").is_some();
        return is_set.then(|| FieldError::forbidden(&path, "may not be specified")).into_iter().collect();
    }
    let stream = stream(options);
    let mut errors = supported_plain(stream, &[ALL_STREAMS, "Stderr", "Stdout"], &path);
    if stream != ALL_STREAMS && options.at("tailLines").is_some() {
        let detail = "`tailLines` and specific `stream` are mutually exclusive for now";
        errors.push(FieldError::forbidden(&FieldPath::new("[]"), detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::connect;
    use pintle_machinery::json;

    #[tokio::test]
    async fn logs_are_read_from_the_kubelet() {
        let pod = |name: &str, node: &str| {
            json!({"metadata": {"name": name, "namespace": "ns"},
                "spec": {"nodeName": node, "containers": [{"name": "c"}]}})
        };
        let node = json!({"metadata": {"name": "n"},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
        let objects =
            [("pods", pod("p", "n")), ("pods", pod("new", "")), ("pods", pod("lost", "x")), ("nodes", node)];
        let metrics = PodLogMetrics::new().unwrap();
        let log = PodLog { kubelets: KubeletAddresses::default(), metrics: Some(metrics.clone()) };
        let check = async |name: &str, options: Value, expected: &str| {
            assert_eq!(connect(&log, &objects, name, options).await, expected);
        };
        let url = "https://10.0.0.1:10250/containerLogs/ns/p/c";
        check("p", json!({}), &format!("Kubelet {url}")).await;
        let insecure = json!({"insecureSkipTLSVerifyBackend": true, "follow": false});
        check("p", insecure, &format!("UnverifiedKubelet {url}")).await;
        let all = json!({"follow": true, "previous": true, "timestamps": true, "sinceSeconds": 5,
            "sinceTime": "2020-01-02T03:04:05Z", "tailLines": 0, "limitBytes": 1});
        let query = "follow=true&previous=true&timestamps=true&sinceSeconds=5&tailLines=0&limitBytes=1";
        check("p", all, &format!("Kubelet {url}?{query}&sinceTime=2020-01-02T03:04:05Z")).await;
        check("new", json!({}), "nothing").await;
        check("new", json!({"container": "x"}), "400 container x is not valid for pod new").await;
        check("lost", json!({}), "404 pods \"x\" not found").await;
        check("missing", json!({}), "404 pods \"missing\" not found").await;
        log.note_untrusted();
        let collectors = metrics.collectors();
        let families = collectors.iter().flat_map(|collector| collector.collect());
        let counted: Vec<f64> = families
            .flat_map(|family| family.get_metric().to_vec())
            .map(|metric| metric.get_counter().get_value())
            .collect();
        assert_eq!(counted.iter().sum::<f64>(), 8.0);
    }

    #[test]
    fn options_of_logs_are_checked() {
        let check = |options: Value, expected: &[&str]| {
            let errors: Vec<String> = validate_options(&options).iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected, "{options}");
        };
        check(json!({"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}), &[]);
        check(
            json!({"tailLines": -1, "limitBytes": 0, "sinceSeconds": 0, "stream": "All"}),
            &[
                "tailLines: Invalid value: -1: must be greater than or equal to 0",
                "limitBytes: Invalid value: 0: must be greater than 0",
                "sinceSeconds: Invalid value: 0: must be greater than 0",
                "stream: Forbidden: may not be specified",
            ],
        );
        check(
            json!({"sinceSeconds": 0, "sinceTime": "0001-01-01T00:00:00Z"}),
            &["[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"],
        );
    }
}
