//! Measures the cost of auditing a request: from the policy to the last byte in the log, at both stages of a request
//! that is not long-running.
//!
//! The log is a file in a temporary directory; the policy has twenty rules, of which the last matches.

#![allow(clippy::unwrap_used, reason = "a bench stops at anything unexpected")]
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, criterion_group, criterion_main};
use pintle_audit::{
    Attributes, AuditMetrics, Auditor, Backend, BatchConfig, Log, LogConfig, LogFormat, Mode,
    ObjectReference, Policy, RequestMetadata, RotationConfig, Stage,
};
use pintle_machinery::UserInfo;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::runtime::Runtime;

const BATCH: BatchConfig = BatchConfig {
    buffer_size: 1_000_000,
    max_batch_size: 1000,
    max_batch_wait: Duration::from_millis(10),
    throttle: None,
};

fn auditor(level: &str, mode: Mode, dir: &Path, runtime: &Runtime) -> Arc<Auditor> {
    let mut policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n".to_owned();
    for number in 0..19 {
        policy.push_str(&format!(
            "- {{level: Metadata, users: ['system:user-{number}'], verbs: [get, list], resources: [{{group: apps, \
             resources: [deployments, daemonsets/status]}}]}}\n"
        ));
    }
    policy.push_str(&format!("- {{level: {level}}}\n"));
    let (policy, _) = Policy::parse(policy.as_bytes()).unwrap();
    let rotation = RotationConfig { max_size: 100 << 20, max_age_days: 0, max_backups: 1, compress: false };
    let log = LogConfig { path: dir.join("audit.log"), format: LogFormat::Json, rotation: Some(rotation) };
    let metrics = AuditMetrics::new().unwrap();
    let _guard = runtime.enter();
    let backend = Backend::log(Log::open(&log).unwrap(), mode, &BATCH, None, &metrics);
    Auditor::new(policy, vec![backend], metrics)
}

/// A request for a pod, from the first stage to the last.
async fn request(auditor: &Arc<Auditor>, user: &Arc<UserInfo>) {
    let attributes = Attributes {
        user: Some(user),
        verb: "get",
        is_resource_request: true,
        api_group: "",
        resource: "pods",
        subresource: "",
        namespace: "default",
        name: "web-7d4b9c6f5-x2x7k",
        path: "",
    };
    let context = auditor.begin(&attributes, || RequestMetadata {
        audit_id: "3f0e8a5c-7a9b-4b0e-9a52-0d5a1f0e6b1c".to_owned(),
        request_uri: "/api/v1/namespaces/default/pods/web-7d4b9c6f5-x2x7k".to_owned(),
        verb: "get".to_owned(),
        user: Some(user.clone()),
        source_ips: vec!["10.1.2.3".parse().unwrap()],
        user_agent: "kubectl/v1.36.0 (linux/amd64) kubernetes/abcdef0".to_owned(),
        object_ref: Some(ObjectReference {
            resource: "pods".to_owned(),
            namespace: "default".to_owned(),
            name: "web-7d4b9c6f5-x2x7k".to_owned(),
            api_version: "v1".to_owned(),
            ..ObjectReference::default()
        }),
        received: jiff::Timestamp::now(),
    });
    let Some(context) = context else { return };
    context.begin().await;
    context.annotate("authorization.k8s.io/decision", "allow");
    context.annotate("authorization.k8s.io/reason", "");
    context.set_response_code(200);
    context.process(Stage::ResponseComplete).await;
}

fn requests(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let user = Arc::new(UserInfo {
        name: "system:serviceaccount:default:web".to_owned(),
        groups: vec!["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    });
    let mut group = criterion.benchmark_group("audit");
    for (name, level, mode) in [
        ("a request that no rule wants", "None", Mode::Blocking),
        ("a request at the level Metadata, log written at once", "Metadata", Mode::Blocking),
        ("a request at the level Metadata, log in batches", "Metadata", Mode::Batch),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let auditor = auditor(level, mode, dir.path(), &runtime);
        group.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(request(&auditor, &user)));
        });
        runtime.block_on(auditor.shutdown(Duration::from_secs(10)));
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
