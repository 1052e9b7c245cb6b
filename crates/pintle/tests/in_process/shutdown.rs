//! Tests the order of a shutdown: what is still served in each step, and what ends.

use crate::harness::{Answer, Client, Identity, PATIENCE, Server, slow_body};
use bytes::Bytes;
use pintle::{ManagementOptions, Options};
use std::{net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: (&str, &str) = ("Content-Type", "application/json");
/// Longer than a test waits for anything.
const FOR_EVER: Duration = Duration::from_secs(3600);

async fn start(management: ManagementOptions, request_timeout: Duration) -> Server {
    let change = |options: &mut Options| {
        options.management = management;
        options.request_timeout = request_timeout;
        options.shutdown_grace_period = request_timeout * 2;
    };
    Server::start_with(change).await
}

/// Begins the shutdown.
fn shut_down(server: &mut Server) -> JoinHandle<()> {
    let running = server.take();
    tokio::spawn(async move { running.shut_down().await.unwrap() })
}

/// Repeats a request until it has a status.
async fn until(client: &Client, path: &str, status: u16) -> Answer {
    let asking = async {
        loop {
            let answer = client.send(&format!("GET {path}")).await;
            if answer.status == status {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, asking).await.unwrap()
}

/// Waits until the port refuses connections.
pub(crate) async fn until_closed(address: SocketAddr) {
    let asking = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, asking).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_serves_through_the_delay_and_is_not_ready() {
    let delayed = ManagementOptions { shutdown_delay: FOR_EVER, ..ManagementOptions::default() };
    let mut server = start(delayed, FOR_EVER).await;
    server.until_ready().await;
    let stopping = shut_down(&mut server);
    let client = server.client(Identity::Admin).await;
    let answer = until(&client, "/readyz", 500).await;
    assert!(answer.text().contains("[-]shutdown failed: reason withheld"), "{}", answer.text());
    let answer = client.send("GET /readyz/shutdown").await;
    assert_eq!(answer.text(), "internal server error: process is shutting down\n");
    for path in ["/livez", "/healthz", MAPS] {
        let answer = client.send(&format!("GET {path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(server.client(Identity::Admin).await.send(&format!("GET {MAPS}")).await.status, 200);
    stopping.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_outlast_the_port_and_end_with_the_time_of_a_request() {
    let mut server = start(ManagementOptions::default(), Duration::from_secs(3)).await;
    let client = server.client(Identity::Admin).await;
    let mut watch = client.watch(&format!("{MAPS}?watch=1"), &[]).await;
    let stopping = shut_down(&mut server);
    until_closed(server.address()).await;
    // The watch goes on: nothing comes, and it does not end.
    assert!(timeout(Duration::from_millis(500), watch.next()).await.is_err());
    assert!(!stopping.is_finished());
    while timeout(PATIENCE, watch.next()).await.unwrap().is_some() {}
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_with_a_grace_period_end_after_the_delay() {
    let graceful = ManagementOptions {
        shutdown_delay: Duration::from_secs(5),
        shutdown_watch_termination_grace_period: FOR_EVER,
        ..ManagementOptions::default()
    };
    let mut server = start(graceful, FOR_EVER).await;
    server.until_ready().await;
    let client = server.client(Identity::Admin).await;
    let mut watch = client.watch(&format!("{MAPS}?watch=1"), &[]).await;
    let stopping = shut_down(&mut server);
    until(&client, "/readyz", 500).await;
    // During the delay, events come as ever.
    assert_eq!(
        client.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"late\"}}}}")).await.status,
        201
    );
    assert!(watch.take(1).await.contains("late"));
    while timeout(PATIENCE, watch.next()).await.unwrap().is_some() {}
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_refused_while_the_last_ones_end() {
    let refusing = ManagementOptions { shutdown_send_retry_after: true, ..ManagementOptions::default() };
    let mut server = start(refusing, FOR_EVER).await;
    let (sender, body) = slow_body();
    let writer = server.client(Identity::Admin).await;
    let writing = tokio::spawn(async move {
        let response = writer.begin("POST", MAPS, &[JSON], body).await.unwrap();
        Answer::read(response).await
    });
    sender.send(Bytes::from_static(b"{\"metadata\":")).unwrap();
    let client = server.client(Identity::Admin).await;
    client.until_in_flight(1).await;
    let stopping = shut_down(&mut server);
    let refused = until(&client, MAPS, 429).await;
    assert_eq!(refused.text(), "The apiserver is shutting down, please try again later.\n");
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(client.send("GET /livez").await.status, 200);
    // A new connection is accepted, and refused in the same way.
    assert_eq!(server.client(Identity::Admin).await.send(&format!("GET {MAPS}")).await.status, 429);
    sender.send(Bytes::from_static(b"{\"name\":\"late\"}}")).unwrap();
    drop(sender);
    assert_eq!(timeout(PATIENCE, writing).await.unwrap().unwrap().status, 201);
    timeout(PATIENCE, stopping).await.unwrap().unwrap();
}
