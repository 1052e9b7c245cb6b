//! Measures the server's cost of requests through the whole filter chain and the registry, without sockets and TLS.
//!
//! Objects are pods of about 3 KB in the memory engine, so that neither network nor disk is measured.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a bench stops at anything unexpected")]
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use http::Request;
use http_body_util::BodyExt;
use pintle::{Options, Running, StorageBackend};
use pintle_apiserver::base::{body::RequestBody, handler::Handler};
use pintle_machinery::{Value, json};
use std::{
    cell::Cell,
    net::{IpAddr, Ipv4Addr},
};
use tokio::runtime::Runtime;

const PODS: &str = "/api/v1/namespaces/default/pods";
/// The number of pods in a list.
const LISTED: usize = 500;

/// A server and its handler.
struct Bench {
    runtime: Runtime,
    handler: Handler,
    running: Option<Running>,
    next: Cell<usize>,
}

impl Bench {
    fn start() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens.csv");
        std::fs::write(&tokens, "bench,bench,1,\"system:masters\"\n").unwrap();
        let options = Options {
            data_dir: dir.path().to_owned(),
            storage_backend: StorageBackend::Memory,
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure_port: 0,
            token_auth_file: Some(tokens),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let running = runtime.block_on(pintle::start(options)).unwrap();
        let bench = Bench { handler: running.handler(), runtime, running: Some(running), next: Cell::new(0) };
        bench.send(
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            "",
            r#"{"metadata":{"name":"default"}}"#,
        );
        bench
    }

    /// Sends a request and returns the response body.
    fn send(&self, method: &str, path: &str, content_type: &str, body: impl Into<Bytes>) -> Bytes {
        let content_type = if content_type.is_empty() { "application/json" } else { content_type };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Authorization", "Bearer bench")
            .header("Content-Type", content_type)
            .header("Accept", "application/json")
            .body(RequestBody::Bytes(body.into()))
            .unwrap();
        let handler = self.handler.clone();
        self.runtime.block_on(async move {
            let response = handler.call(request).await;
            let code = response.status();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(code.is_success(), "{method} {path}: {code} {body:?}");
            body
        })
    }

    /// A pod with a new name, as JSON.
    fn pod(&self) -> (String, Value) {
        let name = format!("pod-{}", self.next.get());
        self.next.set(self.next.get() + 1);
        let container = |name: &str| {
            let env: Vec<Value> = (0..10)
                .map(|index| json!({"name": format!("VARIABLE_{index}"), "value": "some value"}))
                .collect();
            json!({
                "name": name,
                "image": "registry.example.com/team/application:v1.2.3",
                "args": ["--one=1", "--two=2"],
                "env": env,
                "ports": [{"containerPort": 8080}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
            })
        };
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "bench", "tier": "a"}},
            "spec": {"containers": [container("main"), container("side")]},
        });
        (name, pod)
    }

    /// Creates a pod; returns its name and the created object without resourceVersion, for unconditional updates.
    fn create(&self) -> (String, Value) {
        let (name, pod) = self.pod();
        let answer = self.send("POST", PODS, "", pod.to_string());
        let mut pod: Value = serde_json::from_slice(&answer).unwrap();
        pod["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        (name, pod)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop()).unwrap();
        }
    }
}

fn writes(criterion: &mut Criterion) {
    let bench = Bench::start();
    let mut group = criterion.benchmark_group("requests");
    group.bench_function("create a pod", |bencher| {
        bencher.iter_batched(
            || bench.pod().1.to_string(),
            |body| bench.send("POST", PODS, "", body),
            BatchSize::SmallInput,
        );
    });
    let (name, pod) = bench.create();
    let path = format!("{PODS}/{name}");
    let mut turn = 0_u64;
    group.bench_function("update a pod's labels", |bencher| {
        bencher.iter_batched(
            || {
                let mut pod = pod.clone();
                turn += 1;
                pod["metadata"]["labels"]["turn"] = turn.to_string().into();
                pod.to_string()
            },
            |body| bench.send("PUT", &path, "", body),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("patch a pod's status", |bencher| {
        bencher.iter_batched(
            || {
                turn += 1;
                json!({"status": {"conditions": [{"type": "Ready", "status": "True", "message": turn.to_string()}]}})
                    .to_string()
            },
            |body| bench.send("PATCH", &format!("{path}/status"), "application/strategic-merge-patch+json", body),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("delete a pod", |bencher| {
        bencher.iter_batched(
            || bench.create().0,
            |name| bench.send("DELETE", &format!("{PODS}/{name}?gracePeriodSeconds=0"), "", ""),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn reads(criterion: &mut Criterion) {
    let bench = Bench::start();
    let names: Vec<String> = (0..LISTED).map(|_| bench.create().0).collect();
    let path = format!("{PODS}/{}", names.last().unwrap());
    let mut group = criterion.benchmark_group("requests");
    group.bench_function("get a pod", |bencher| bencher.iter(|| bench.send("GET", &path, "", "")));
    group.bench_function("list 500 pods", |bencher| bencher.iter(|| bench.send("GET", PODS, "", "")));
    group.bench_function("list the first 100 of 500 pods", |bencher| {
        bencher.iter(|| bench.send("GET", &format!("{PODS}?limit=100"), "", ""));
    });
    group.bench_function("list none of 500 pods by label", |bencher| {
        bencher.iter(|| bench.send("GET", &format!("{PODS}?labelSelector=app%3Dother"), "", ""));
    });
    group
        .bench_function("discover everything", |bencher| bencher.iter(|| bench.send("GET", "/apis", "", "")));
    group.finish();
}

criterion_group!(benches, writes, reads);
criterion_main!(benches);
