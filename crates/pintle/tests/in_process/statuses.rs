//! Tests failures: the exact `Status` of every class, and the plain texts where the API has no `Status`.

use crate::harness::{Identity, Server, Transcript, assert_transcript, plain_user};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_clash_with_what_is_there() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            &format!("GET {MAPS}/none"),
            &format!("GET {MAPS}/none?pretty=1"),
            &format!("GET {MAPS}/none\nAccept: application/yaml"),
            &format!("GET {MAPS}/none\nAccept: application/vnd.kubernetes.protobuf"),
            &format!("DELETE {MAPS}/none"),
            &format!("PUT {MAPS}/none\n\n{{\"metadata\":{{\"name\":\"none\"}}}}"),
            &format!("PATCH {MAPS}/none\nContent-Type: application/merge-patch+json\n\n{{}}"),
            &format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"),
            &format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"),
            &format!("PUT {MAPS}/a\n\n{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"1\"}},\"data\":{{\"k\":\"v\"}}}}"),
            &format!("PUT {MAPS}/a\n\n{{\"metadata\":{{\"name\":\"a\",\"uid\":\"8bfbe1f0-6a5b-4a3c-9df3-1f6a7d6a7f11\"}}}}"),
            &format!("PUT {MAPS}/a\n\n{{\"metadata\":{{\"name\":\"b\"}}}}"),
            &format!("PUT {MAPS}/a\n\n{{\"metadata\":{{\"name\":\"a\",\"namespace\":\"other\"}}}}"),
            &format!("DELETE {MAPS}/a\n\n{{\"preconditions\":{{\"resourceVersion\":\"1\"}}}}"),
            &format!("DELETE {MAPS}/a\n\n{{\"preconditions\":{{\"uid\":\"no\"}}}}"),
            "POST /api/v1/namespaces/none/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}",
            "DELETE /api/v1/namespaces/default\n\n{\"preconditions\":{\"uid\":\"no\"}}",
            "DELETE /api/v1/namespaces/default",
            "DELETE /apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical\n\n{\"preconditions\":{\"resourceVersion\":\"1\"}}",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_are_invalid() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            &format!("POST {MAPS}\n\n{{}}"),
            &format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"A_b\",\"labels\":{{\"-\":\"x y\"}}}},\"data\":{{\"a b\":\"\"}}}}"),
            "POST /apis/apps/v1/namespaces/default/deployments\n\n{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"spec\":{\"containers\":[]}}}}",
            "POST /api/v1/namespaces/default/services\n\n{\"metadata\":{\"name\":\"s\"},\"spec\":{\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":0}]}}",
            "POST /api/v1/namespaces/default/services\n\n{\"metadata\":{\"name\":\"s\"},\"spec\":{\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":80}]}}",
            "POST /api/v1/namespaces/default/pods\n\n{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
            &format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"1\"}}}}"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_media_types_that_do_not_fit() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            &format!("POST {MAPS}\n\n{{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}}"),
            &format!("POST {MAPS}\n\n{{\"kind\":\"Nope\",\"apiVersion\":\"v1\"}}"),
            &format!("POST {MAPS}\n\n{{\"kind\":\"ConfigMap\",\"apiVersion\":\"apps/v1\"}}"),
            &format!("POST {MAPS}\n\n{{\"kind\":\"ConfigMap\",\"apiVersion\":\"a/b/c\"}}"),
            &format!("POST {MAPS}\n\n{{\"kind\":\"ConfigMap\",\"apiVersion\":\"apps/\"}}"),
            &format!("POST {MAPS}\n\n{{\"kind\":\"Status\",\"apiVersion\":\"apps/v9\"}}"),
            &format!("POST {MAPS}\n\n{{\"kind\":\"List\",\"apiVersion\":\"apps/v1\"}}"),
            &format!("DELETE {MAPS}/a\n\n{{\"kind\":\"Status\",\"apiVersion\":\"v1\"}}"),
            &format!("DELETE {MAPS}/a\n\n{{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}}"),
            &format!("DELETE {MAPS}/a\n\n{{\"kind\":\"DeleteOptions\",\"apiVersion\":\"apps/\"}}"),
            &format!("POST {MAPS}\n\n{{\"data\":[]}}"),
            &format!("POST {MAPS}\n\n{{\"data\":"),
            &format!("POST {MAPS}\n\nnull"),
            &format!("POST {MAPS}\n\n[]"),
            &format!("POST {MAPS}"),
            &format!("POST {MAPS}\nContent-Type: text/plain\n\n{{}}"),
            &format!("POST {MAPS}\nContent-Type: application/yaml\n\na: [b"),
            &format!("POST {MAPS}\nContent-Type: application/vnd.kubernetes.protobuf\n\nk8sno"),
            &format!("GET {MAPS}\nAccept: application/*"),
            &format!("GET {MAPS}\nAccept: text/html"),
            &format!("GET {MAPS}/a\nAccept: application/json;as=Table;v=v2;g=meta.k8s.io"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/json\n\n{{}}"),
            &format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/merge-patch+json\n\n[]"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/merge-patch+json\n\n{{"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/merge-patch+json\n\n{{\"data\":{{\"k\":1}}}}"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/json-patch+json\n\n{{}}"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/json-patch+json\n\n[{{\"op\":\"test\",\"path\":\"/data\",\"value\":1}}]"),
            &format!("PATCH {MAPS}/a\nContent-Type: application/strategic-merge-patch+json\n\n{{\"data\":{{\"$patch\":\"no\"}}}}"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_make_no_sense() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            &format!("GET {MAPS}?labelSelector=a%20b"),
            &format!("GET {MAPS}?fieldSelector=a%3D%3D"),
            &format!("GET {MAPS}?fieldSelector=data.k%3Dv"),
            &format!("GET {MAPS}?limit=x"),
            &format!("GET {MAPS}?limit=-1"),
            &format!("GET {MAPS}?resourceVersion=x"),
            &format!("GET {MAPS}?resourceVersion=99999999"),
            &format!("GET {MAPS}?resourceVersion=1&resourceVersionMatch=Sometimes"),
            &format!("GET {MAPS}?resourceVersionMatch=Exact"),
            &format!("GET {MAPS}?resourceVersion=0&resourceVersionMatch=Exact"),
            &format!("GET {MAPS}?continue=x"),
            &format!("GET {MAPS}?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi9zZWNyZXRzL2EifQ"),
            &format!("GET {MAPS}?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0&resourceVersion=5"),
            &format!("GET {MAPS}?sendInitialEvents=true"),
            &format!("GET {MAPS}?watch=1&sendInitialEvents=true"),
            &format!("GET {MAPS}?watch=1&resourceVersion=x"),
            &format!("GET {MAPS}?watch=1&resourceVersion=99999999&timeoutSeconds=1"),
            &format!("GET {MAPS}?watch=1\nAccept: application/yaml"),
            &format!("GET {MAPS}?timeoutSeconds=x"),
            &format!("GET {MAPS}?timeout=x"),
            &format!("GET {MAPS}?timeout=x\nAccept: application/yaml"),
            &format!("GET {MAPS}?watch=1&continue=x&includeObject=Some\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io"),
            "GET /api/v1/watch/namespaces/default/configmaps/a?fieldSelector=data.k%3Dv",
            "GET /api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db",
            &format!("GET {MAPS}/kube-root?resourceVersion=x"),
            &format!("GET {MAPS}?includeObject=Some\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io"),
            &format!("POST {MAPS}?dryRun=Some\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"),
            &format!("POST {MAPS}?fieldManager=a%07\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"),
            &format!("DELETE {MAPS}/a?propagationPolicy=No"),
            &format!("DELETE {MAPS}/a?gracePeriodSeconds=x"),
            &format!("DELETE {MAPS}/a\n\n{{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}}"),
            &format!("GET {MAPS}?export=1"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_do_not_exist() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            "GET /nope",
            "GET /apis/nope.example.com/v1/things",
            "GET /apis/apps/v9/deployments",
            "GET /apis/apps/v1/things",
            "GET /apis/apps/v9",
            "GET /apis/nope.example.com",
            "GET /api/v2",
            "GET /api/v1/namespaces/default/nodes",
            "GET /api/v1/configmaps/a",
            "GET /api/v1/namespaces/default/configmaps/a/status",
            "GET /api/v1/namespaces/default/configmaps/a/b/c",
            "POST /api/v1/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}",
            "DELETE /api/v1/configmaps",
            "DELETE /api/v1/namespaces",
            "GET /api/v1/bindings",
            "GET /api/v1/watch?x=1",
            "POST /apis/apps/v1/proxy/",
            "HEAD /api/v1/namespaces/default",
            "OPTIONS /api/v1/namespaces/default",
            "POST /version\n\n{}",
            "PUT /api/v1/namespaces/default/configmaps\n\n{}",
            // Below `watch` only watches are served: a permission to watch must not allow writes.
            "POST /api/v1/watch/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}",
            "PUT /api/v1/watch/namespaces/default/configmaps/a\n\n{\"metadata\":{\"name\":\"a\"}}",
            "PATCH /api/v1/watch/namespaces/default/configmaps/a\nContent-Type: application/merge-patch+json\n\n{}",
            "DELETE /api/v1/watch/namespaces/default/configmaps/kube-root-ca.crt",
            "DELETE /api/v1/watch/namespaces/default/configmaps",
            "GET /api/v1/watch/namespaces/default/pods/a/status",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_may_not() {
    let server = Server::start_with(plain_user).await;
    server.until_ready().await;
    let client = server.client(Identity::Nobody).await;
    let mut transcript = Transcript::new(&server).by(&client);
    transcript
        .run_all(&[
            &format!("GET {MAPS}"),
            &format!("GET {MAPS}/a\nAuthorization: Bearer plain"),
            "GET /api/v1/nodes\nAuthorization: Bearer plain",
            "POST /apis/apps/v1/namespaces/default/deployments/d/scale\nAuthorization: Bearer plain\n\n{}",
            "GET /metrics\nAuthorization: Bearer plain",
            "GET /api",
            "GET /version\nAuthorization: Bearer wrong",
            "GET /healthz\nAuthorization: Bearer wrong",
            "GET /healthz\nAuthorization: Basic abc",
            "GET /api/v1/nodes\nAuthorization: Bearer plain\nImpersonate-User: root",
        ])
        .await;
    let mut masters = Transcript::new(&server);
    masters
        .run_all(&[
            "GET /api/v1/nodes\nImpersonate-User: jane\nImpersonate-Group: developers",
            "GET /api/v1/nodes\nImpersonate-Group: developers",
        ])
        .await;
    assert_transcript!(format!("{transcript}{masters}"));
    server.stop().await;
}
