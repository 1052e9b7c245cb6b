//! The endpoints for debugging: flags, profiles, the socket.

use crate::harness::{Identity, PATIENCE, Server};
use pintle_machinery::{codec::cbor, json};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

#[tokio::test]
async fn flags_and_profiles_are_for_those_who_may_see_them() {
    let server = Server::start_with(|options| {
        options.debugging.flags = Arc::new(BTreeMap::from([("v".to_owned(), "3".to_owned())]));
    })
    .await;
    let accept = [("accept", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz")];
    let answer = server.exchange("GET", "/flagz", &accept, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.text(),
        "{\"kind\":\"Flagz\",\"apiVersion\":\"config.k8s.io/v1beta1\",\"metadata\":{\"name\":\"apiserver\"},\"flags\":{\"v\":\"3\"}}\n"
    );
    let indented = server.exchange("GET", "/flagz?pretty=true", &accept, "").await;
    assert!(indented.text().starts_with("{\n  \"kind\": \"Flagz\",\n"), "{}", indented.text());
    for (accept, refused_as) in [
        ("application/yaml", "application/yaml"),
        ("application/json", "application/json"),
        ("application/vnd.kubernetes.protobuf", "application/json"),
    ] {
        let refused = server.exchange("GET", "/flagz", &[("accept", accept)], "").await;
        assert_eq!((refused.status, refused.header("content-type")), (406, refused_as), "{accept}");
    }
    let answer = server.exchange("GET", "/flagz", &[("accept", "text/plain")], "").await;
    assert!(answer.text().ends_with("debugging purposes only.\nv=3\n"), "{}", answer.text());
    let profile = server.send("GET /debug/pprof/profile?seconds=1").await;
    assert_eq!(profile.status, 200, "{}", profile.text());
    assert_eq!(server.send("GET /debug/pprof/cmdline").await.status, 404);
    assert_eq!(server.send("GET /logs/").await.status, 404);
    assert_eq!(server.send("GET /flagz/").await.status, 404);
    let nobody = server.client(Identity::Nobody).await;
    for path in
        ["/flagz", "/debug/pprof/", "/debug/pprof/profile", "/debug/pprof/heap", "/debug/pprof/symbol"]
    {
        assert_eq!(nobody.send(&format!("GET {path}")).await.status, 403, "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_are_in_cbor_if_resources_are() {
    let accept = [("accept", "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz")];
    for has_cbor in [true, false] {
        let server = Server::start_with(|options| {
            options.features.gates.add(&format!("CBORServingAndStorage={has_cbor}"));
            options.debugging.flags = Arc::new(BTreeMap::from([("v".to_owned(), "3".to_owned())]));
        })
        .await;
        let answer = server.exchange("GET", "/flagz", &accept, "").await;
        if has_cbor {
            let media_type = "application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz";
            assert_eq!((answer.status, answer.header("content-type")), (200, media_type));
            let page = json!({
                "kind": "Flagz",
                "apiVersion": "config.k8s.io/v1beta1",
                "metadata": {"name": "apiserver"},
                "flags": {"v": "3"},
            });
            assert_eq!(cbor::decode_any(&answer.body).unwrap(), page);
        } else {
            assert_eq!(answer.status, 406);
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn profiles_can_be_switched_off() {
    let server = Server::start_with(|options| options.debugging.profiling = false).await;
    assert_eq!(server.send("GET /debug/pprof/").await.status, 404);
    assert_eq!(server.send("GET /debug/flags/v").await.status, 404);
    server.stop().await;
}

/// Sends a request to a Unix socket; returns the whole response.
async fn ask(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut response)).await.unwrap().unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn the_debug_socket_needs_no_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("debug.sock");
    // A file that an earlier server left is replaced.
    std::fs::write(&socket, "").unwrap();
    let server = Server::start_with(|options| {
        options.debugging.profiling = false;
        options.debugging.debug_socket_path = Some(socket.clone());
    })
    .await;
    let head = "Host: x\r\nConnection: close\r\n";
    for (request, code, part) in [
        (format!("GET /debug/pprof/cmdline HTTP/1.1\r\n{head}\r\n"), 200, "in_process"),
        (format!("GET /debug/pprof/ HTTP/1.1\r\n{head}\r\n"), 200, "cmdline"),
        (format!("PUT /debug/flags/v HTTP/1.1\r\n{head}Content-Length: 1\r\n\r\n2"), 200, "verbosity to 2"),
        (format!("GET /api/v1/secrets HTTP/1.1\r\n{head}\r\n"), 404, "404 page not found"),
    ] {
        let response = ask(&socket, &request).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {code} ")) && response.contains(part), "{response}");
    }
    server.stop().await;
}
