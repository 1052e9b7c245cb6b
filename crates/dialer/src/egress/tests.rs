//! Tests of proxies: good ones, and ones that hang, say nonsense or too much.

mod connect_proxy;
mod konnectivity_server;

use super::{dial_timeout::DIAL_TIMEOUT, *};
use connect_proxy::ConnectProxy;
use konnectivity_server::{Answer, KonnectivityServer};
use std::{fs, time::Duration};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};

/// The time limit of what takes no time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A dialer as a configuration file configures it, and the metrics.
fn dialer(directory: &TempDir, connection: &str) -> Result<(Dialer, EgressMetrics), String> {
    let path = directory.path().join("egress.yaml");
    fs::write(
        &path,
        format!(
            "kind: EgressSelectorConfiguration\napiVersion: apiserver.k8s.io/v1beta1\negressSelections:\n- name: \
             cluster\n  connection: {connection}\n"
        ),
    )
    .unwrap();
    let metrics = EgressMetrics::new().unwrap();
    let selector = EgressSelector::load(&path, &metrics).map_err(|error| error.to_string())?;
    assert!(selector.dialer(Network::Etcd).is_direct() && selector.configured(Network::Etcd).is_none());
    Ok((selector.dialer(Network::Cluster), metrics))
}

fn over_unix(directory: &TempDir, protocol: &str) -> (Dialer, EgressMetrics) {
    let socket = directory.path().join("proxy.sock");
    let connection =
        format!("{{proxyProtocol: {protocol}, transport: {{uds: {{udsName: {}}}}}}}", socket.display());
    dialer(directory, &connection).unwrap()
}

/// A server that answers what it gets, and its address.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

/// Sends bytes over a connection to [`echo`], and expects them back.
async fn exchange(link: &mut crate::Link, size: usize) {
    let sent: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
    let mut received = vec![0; size];
    let (mut from, mut to) = tokio::io::split(link);
    let (read, written) = tokio::join!(from.read_exact(&mut received), async {
        to.write_all(&sent).await?;
        to.flush().await
    });
    read.unwrap();
    written.unwrap();
    assert!(sent == received);
}

async fn refusal(dialer: &Dialer, address: &str) -> String {
    match timeout(PATIENCE * 4, dialer.dial(address)).await.unwrap() {
        Ok(_) => panic!("{address} was reached"),
        Err(cause) => cause.to_string(),
    }
}

/// The values of the metrics: starts, failures to connect, failures of the proxy, and successes.
fn counts(metrics: &EgressMetrics) -> [u64; 4] {
    use prometheus::core::Collector;
    let mut counts = [0; 4];
    for family in metrics.collect() {
        for metric in family.get_metric() {
            let is_connect = metric.get_label().iter().any(|label| label.value() == "connect");
            let (at, value) = match family.name() {
                "apiserver_egress_dialer_dial_start_total" => (0, metric.get_counter().get_value() as u64),
                "apiserver_egress_dialer_dial_failure_count" if is_connect => {
                    (1, metric.get_counter().get_value() as u64)
                }
                "apiserver_egress_dialer_dial_failure_count" => (2, metric.get_counter().get_value() as u64),
                "apiserver_egress_dialer_dial_duration_seconds" => {
                    (3, metric.get_histogram().get_sample_count())
                }
                _ => continue,
            };
            counts[at] += value;
        }
    }
    counts
}

/// The value of a metric of konnectivity's client with these label values, in the order of their names.
fn konnectivity(metrics: &EgressMetrics, name: &str, labels: &[&str]) -> i64 {
    use prometheus::core::Collector;
    let name = format!("konnectivity_network_proxy_client_{name}");
    let families = metrics.collect();
    let metrics =
        families.iter().filter(|family| family.name() == name).flat_map(|family| family.get_metric());
    let of_labels = |metric: &&prometheus::proto::Metric| {
        metric.get_label().iter().map(|label| label.value()).eq(labels.iter().copied())
    };
    let found = metrics.filter(of_labels).map(|metric| match name.ends_with("_connections") {
        true => metric.get_gauge().get_value() as i64,
        false => metric.get_counter().get_value() as i64,
    });
    found.sum()
}

#[tokio::test]
async fn connections_go_through_a_connect_proxy() {
    let directory = TempDir::new().unwrap();
    let address = echo().await;
    let proxy = ConnectProxy::start(directory.path()).await;
    let over_tls = format!(
        "{{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: 'https://{}', tlsConfig: {{caBundle: {ca}, clientCert: \
         {cert}, clientKey: {key}, tlsServerName: proxy}}}}}}}}",
        proxy.tls_address,
        ca = proxy.ca.display(),
        cert = proxy.cert.display(),
        key = proxy.key.display(),
    );
    let over_tcp =
        format!("{{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: 'http://{}'}}}}}}", proxy.address);
    for (dialer, metrics) in [
        over_unix(&directory, "HTTPConnect"),
        dialer(&directory, &over_tcp).unwrap(),
        dialer(&directory, &over_tls).unwrap(),
    ] {
        let mut link = dialer.dial(&address).await.unwrap();
        exchange(&mut link, 100_000).await;
        assert_eq!(counts(&metrics), [1, 0, 0, 1]);
        assert_eq!(proxy.last_request(), format!("CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    }
    // The certificate has another name.
    let (dialer, metrics) =
        dialer(&directory, &over_tls.replace("tlsServerName: proxy", "tlsServerName: other")).unwrap();
    assert_eq!(
        refusal(&dialer, &address).await,
        "tls: failed to verify certificate: x509: certificate is valid for proxy, not other"
    );
    assert_eq!(counts(&metrics), [1, 1, 0, 0]);
}

#[tokio::test]
async fn a_connect_proxy_refuses_or_is_not_understood() {
    let directory = TempDir::new().unwrap();
    let proxy = ConnectProxy::start(directory.path()).await;
    let (dialer, metrics) = over_unix(&directory, "HTTPConnect");
    let name = directory.path().join("proxy.sock").display().to_string();
    let unread =
        |why: &str| format!("reading HTTP response from CONNECT to a:1 via proxy {name} failed: {why}");
    let rows = [
        (
            "HTTP/1.1 403 Forbidden\r\n\r\nno",
            format!("proxy error from {name} while dialing a:1, code 403: 403 Forbidden"),
        ),
        (
            "HTTP/1.1 201 Created\r\n\r\n",
            format!("proxy error from {name} while dialing a:1, code 201: 201 Created"),
        ),
        ("hello\r\n\r\n", unread("malformed HTTP response \"hello\"")),
        ("HTTP/1.1 200 OK\r\n", unread("unexpected EOF")),
        ("", unread("unexpected EOF")),
        (
            "HTTP/1.1 200 OK\r\n\r\nearly",
            format!("unexpected 5 bytes of buffered data from CONNECT proxy \"{name}\""),
        ),
    ];
    let count = rows.len() as u64;
    for (response, expected) in rows {
        proxy.answer_with(response.as_bytes().to_vec());
        assert_eq!(refusal(&dialer, "a:1").await, expected, "{response}");
    }
    assert_eq!(counts(&metrics), [count, 0, count, 0]);
    // A head that never ends.
    proxy.answer_with([b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".repeat(1 << 20)].concat());
    assert_eq!(refusal(&dialer, "a:1").await, unread("unexpected EOF"));
    drop(proxy);
    fs::remove_file(directory.path().join("proxy.sock")).unwrap();
    assert_eq!(
        refusal(&dialer, "a:1").await,
        format!("dial unix {name}: connect: no such file or directory")
    );
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_hangs_has_its_time() {
    for protocol in ["HTTPConnect", "GRPC"] {
        let directory = TempDir::new().unwrap();
        let listener = tokio::net::UnixListener::bind(directory.path().join("proxy.sock")).unwrap();
        let (dialer, metrics) = over_unix(&directory, protocol);
        let begun = tokio::time::Instant::now();
        assert_eq!(refusal(&dialer, "a:1").await, "dial timeout, backstop");
        assert!(begun.elapsed() < DIAL_TIMEOUT * 2);
        assert_eq!(counts(&metrics), [1, 0, 1, 0]);
        drop(listener);
    }
}

#[tokio::test]
async fn connections_go_through_a_konnectivity_server() {
    let directory = TempDir::new().unwrap();
    let server = KonnectivityServer::start(directory.path(), Answer::Connect);
    let (dialer, metrics) = over_unix(&directory, "GRPC");
    let address = echo().await;
    let mut links = Vec::new();
    for _ in 0..3 {
        let mut link = dialer.dial(&address).await.unwrap();
        exchange(&mut link, 1_000_000).await;
        links.push(link);
    }
    assert_eq!(counts(&metrics), [3, 0, 0, 3]);
    let packets = |labels: [&str; 2]| konnectivity(&metrics, "stream_packets_total", &labels);
    assert_eq!(packets(["DIAL_REQ", "from_client"]), 3);
    assert_eq!(packets(["DIAL_RSP", "to_client"]), 3);
    assert!(packets(["DATA", "from_client"]) >= 3 * 1_000_000 / 32_768);
    assert!(packets(["DATA", "to_client"]) >= 3);
    assert_eq!(konnectivity(&metrics, "client_connections", &["ok"]), 3);
    assert_eq!(server.closed(), 0);
    // A connection is closed by both sides: by this one when it is dropped, or by the other one.
    drop(links.pop());
    server.wait_for_closed(1).await;
    let mut link = links.pop().unwrap();
    link.shutdown().await.unwrap();
    assert!(link.write_all(b"more").await.is_err());
    server.end_connections();
    let mut rest = Vec::new();
    assert_eq!(link.read_to_end(&mut rest).await.unwrap(), 0);
    assert!(packets(["CLOSE_REQ", "from_client"]) >= 1);
    assert_eq!(konnectivity(&metrics, "client_connections", &["dialing"]), 0);
}

#[tokio::test]
async fn a_konnectivity_server_that_is_restarted_is_awaited() {
    let directory = TempDir::new().unwrap();
    let (dialer, metrics) = over_unix(&directory, "GRPC");
    let address = echo().await;
    // The dial is polled first.
    let (link, _server) = tokio::join!(dialer.dial(&address), async {
        KonnectivityServer::start(directory.path(), Answer::Connect)
    });
    exchange(&mut link.unwrap(), 1000).await;
    assert_eq!(counts(&metrics)[..3], [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_konnectivity_server_that_is_away_is_awaited_for_the_time_of_a_dial() {
    let directory = TempDir::new().unwrap();
    let (dialer, metrics) = over_unix(&directory, "GRPC");
    let begun = tokio::time::Instant::now();
    let refused = refusal(&dialer, "a:1").await;
    assert!(refused.starts_with("context deadline exceeded: connection error: desc = "), "{refused}");
    assert!(refused.ends_with("proxy.sock: connect: no such file or directory\""), "{refused}");
    assert!(begun.elapsed() >= DIAL_TIMEOUT && begun.elapsed() < DIAL_TIMEOUT * 2);
    assert_eq!(counts(&metrics), [1, 1, 0, 0]);
}

#[tokio::test]
async fn packets_that_answer_no_dial_are_skipped() {
    let directory = TempDir::new().unwrap();
    let _server = KonnectivityServer::start(directory.path(), Answer::HintFirst);
    let (dialer, _) = over_unix(&directory, "GRPC");
    let mut link = dialer.dial(&echo().await).await.unwrap();
    exchange(&mut link, 1000).await;
}

#[tokio::test]
async fn a_konnectivity_server_refuses_or_is_not_understood() {
    let check = async |answer: Answer, expected: &str, reason: &str| {
        let directory = TempDir::new().unwrap();
        let _server = KonnectivityServer::start(directory.path(), answer);
        let (dialer, metrics) = over_unix(&directory, "GRPC");
        assert_eq!(refusal(&dialer, "a:1").await, expected, "{answer:?}");
        assert_eq!(counts(&metrics), [1, 0, 1, 0], "{answer:?}");
        assert_eq!(konnectivity(&metrics, "dial_failure_total", &[reason]), 1, "{answer:?}");
        assert_eq!(konnectivity(&metrics, "client_connections", &["ok"]), 0, "{answer:?}");
        let broken =
            konnectivity(&metrics, "stream_errors_total", &["Unimplemented", "Unknown", "to_client"]);
        assert_eq!(broken, i64::from(matches!(answer, Answer::Unimplemented)), "{answer:?}");
    };
    check(Answer::Refuse("dial tcp 10.0.0.1:1: i/o timeout"), "dial tcp 10.0.0.1:1: i/o timeout", "endpoint")
        .await;
    check(Answer::CloseDial, "dial closed", "dialclosed").await;
    check(Answer::OtherDial, "tunnel closed", "tunnelclosed").await;
    check(Answer::DataFirst, "tunnel closed", "tunnelclosed").await;
    check(Answer::End, "tunnel closed", "tunnelclosed").await;
    check(Answer::Garbage, "tunnel closed", "tunnelclosed").await;
    check(Answer::LargePacket, "tunnel closed", "tunnelclosed").await;
    check(Answer::Unimplemented, "tunnel closed", "tunnelclosed").await;
}

#[tokio::test]
async fn a_konnectivity_server_that_breaks_its_protocol_ends_the_connection() {
    for answer in [Answer::OtherConnection, Answer::BreakOff] {
        let directory = TempDir::new().unwrap();
        let _server = KonnectivityServer::start(directory.path(), answer);
        let (dialer, _) = over_unix(&directory, "GRPC");
        let mut link = dialer.dial("a:1").await.unwrap();
        let mut buffer = [0; 10];
        let read = timeout(PATIENCE, link.read(&mut buffer)).await.unwrap();
        assert!(read.is_err(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_side_that_does_not_read_slows_the_other_side() {
    let directory = TempDir::new().unwrap();
    let server = KonnectivityServer::start(directory.path(), Answer::Flood);
    let (dialer, _) = over_unix(&directory, "GRPC");
    let mut link = dialer.dial("a:1").await.unwrap();
    // The server sends until it has to wait, since this side reads nothing.
    server.wait_until_stuck().await;
    assert!(server.sent() <= 256 << 10, "{}", server.sent());
    // This side writes until it has to wait, since the server reads nothing.
    let mut written = 0;
    let second = Duration::from_secs(1);
    while let Ok(count) = timeout(second, link.write(&[0; 16 << 10])).await {
        written += count.unwrap();
        assert!(written <= 256 << 10, "{written}");
    }
    // Bytes that were sent are still there.
    let mut buffer = vec![1; 100_000];
    link.read_exact(&mut buffer).await.unwrap();
    assert!(buffer.iter().all(|byte| *byte == 0));
}
