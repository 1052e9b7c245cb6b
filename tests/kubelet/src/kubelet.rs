//! The server.

use crate::{
    ports,
    spdy::{self, SPDY},
    streams::Wanted,
    websocket,
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use pintle_harness::{ADDRESSES, Error, Server};
use pintle_websocket::Handshake;
use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use serde_json::{Value, json};
use std::{convert::Infallible, path::PathBuf, sync::Arc};
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_rustls::TlsAcceptor;

type Answer = Response<Full<Bytes>>;

/// A kubelet. It stops when dropped, with its connections.
pub struct Kubelet {
    _runtime: Runtime,
    port: u16,
}

impl Kubelet {
    /// The pod that is registered, and its container.
    pub const POD: &'static str = "one";
    /// The container of the pod.
    pub const CONTAINER: &'static str = "main";

    /// Starts a kubelet, whose commands see the folder `root` as the root of their files. It has to run in a network of
    /// its own ([`pintle_harness::in_own_network`]).
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(root: PathBuf) -> Result<Kubelet, Error> {
        let [address, ..] = ADDRESSES;
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([address.to_owned()])?.self_signed(&key)?;
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(str::to_owned)?;
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind((address, 0)))?;
        let port = listener.local_addr()?.port();
        let root = Arc::new(root);
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, root) = (acceptor.clone(), root.clone());
                tokio::spawn(async move {
                    let Ok(connection) = acceptor.accept(socket).await else { return };
                    let service = service_fn(move |request| answer(request, root.clone()));
                    let serving = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
                    serving.with_upgrades().await.ok();
                });
            }
        });
        Ok(Kubelet { _runtime: runtime, port })
    }

    /// Registers the node and a running pod on it. A node that is `native` says that it speaks WebSocket itself.
    ///
    /// # Errors
    /// When the server refuses them.
    pub fn register(&self, server: &Server, is_native: bool) -> Result<(), Error> {
        let [address, ..] = ADDRESSES;
        let features = if is_native { vec!["ExtendWebSocketsToKubelet"] } else { Vec::new() };
        let node = json!({"metadata": {"name": "node"}, "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
            "declaredFeatures": features,
        }});
        let account = json!({"metadata": {"name": "default"}});
        let pod = json!({"metadata": {"name": Kubelet::POD}, "spec": {"nodeName": "node",
            "containers": [{"name": Kubelet::CONTAINER, "image": "none", "stdin": true}]}});
        let status = json!({"status": {"phase": "Running", "podIP": address}});
        let namespaced = "/api/v1/namespaces/default";
        send(server, "POST", "/api/v1/nodes", "application/json", &node)?;
        // A controller of the server may have made it.
        send(server, "POST", &format!("{namespaced}/serviceaccounts"), "application/json", &account).ok();
        send(server, "POST", &format!("{namespaced}/pods"), "application/json", &pod)?;
        let path = format!("{namespaced}/pods/{}/status", Kubelet::POD);
        send(server, "PATCH", &path, "application/merge-patch+json", &status)
    }
}

fn send(server: &Server, method: &str, path: &str, content_type: &str, body: &Value) -> Result<(), Error> {
    let headers = [("content-type", content_type)];
    let response = server.client()?.request(method, path, &headers, body.to_string().as_bytes())?;
    match response.status < 300 {
        true => Ok(()),
        false => Err(format!("{method} {path}: {}", response.text()).into()),
    }
}

async fn answer(mut request: Request<Incoming>, root: Arc<PathBuf>) -> Result<Answer, Infallible> {
    let uri = request.uri().clone();
    let query: Vec<(String, String)> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decode(&value.replace('+', " "))))
        .collect();
    let path: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
    let wanted = Wanted::of(&query);
    Ok(match *path {
        ["containerLogs", _, _, container] => {
            text(200, (1..=3).map(|line| format!("{container} line {line}\n")).collect())
        }
        [kind @ ("exec" | "attach"), ..] => {
            let mut command: Vec<String> =
                query.iter().filter(|(name, _)| name == "command").map(|(_, word)| word.clone()).collect();
            if kind == "attach" {
                command = vec!["attach".to_owned()];
            }
            if let Ok(handshake) = Handshake::read(request.method(), request.headers()) {
                let Some(protocol) = websocket::choose(handshake.protocols()) else {
                    return Ok(text(403, String::new()));
                };
                let upgraded = upgrade::on(&mut request);
                tokio::spawn(async move {
                    if let Ok(connection) = upgraded.await {
                        websocket::serve(TokioIo::new(connection), command, wanted, root).await;
                    }
                });
                return Ok(handshake
                    .response(Some(HeaderValue::from_static(protocol)))
                    .map(|()| Full::default()));
            }
            let upgraded = upgrade::on(&mut request);
            tokio::spawn(async move {
                if let Ok(connection) = upgraded.await {
                    spdy::serve(TokioIo::new(connection), command, wanted, root).await;
                }
            });
            switched("v4.channel.k8s.io")
        }
        ["portForward", ..] if request.headers().get(header::UPGRADE).is_some_and(|to| to == SPDY) => {
            let upgraded = upgrade::on(&mut request);
            tokio::spawn(async move {
                if let Ok(connection) = upgraded.await {
                    ports::serve(TokioIo::new(connection)).await;
                }
            });
            switched("portforward.k8s.io")
        }
        ["portForward", ..] => match Handshake::read(request.method(), request.headers()) {
            Ok(handshake) => {
                let ports: Vec<u16> = query
                    .iter()
                    .filter(|(name, _)| name == "port")
                    .flat_map(|(_, ports)| {
                        ports.split(',').filter_map(|port| port.parse().ok()).collect::<Vec<_>>()
                    })
                    .collect();
                let Some(protocol) = ports::choose(handshake.protocols()) else {
                    return Ok(text(403, String::new()));
                };
                let upgraded = upgrade::on(&mut request);
                tokio::spawn(async move {
                    let Ok(connection) = upgraded.await else { return };
                    match protocol == ports::TUNNEL {
                        true => ports::serve_tunnel(TokioIo::new(connection)).await,
                        false => ports::serve_websocket(TokioIo::new(connection), ports).await,
                    }
                });
                handshake.response(Some(HeaderValue::from_static(protocol))).map(|()| Full::default())
            }
            Err(_) => text(403, String::new()),
        },
        _ => text(200, format!("{} {uri}\n", request.method())),
    })
}

fn text(code: u16, text: String) -> Answer {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    response
}

fn switched(protocol: &'static str) -> Answer {
    let mut response = text(101, String::new());
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
    headers.insert("x-stream-protocol-version", HeaderValue::from_static(protocol));
    response
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
