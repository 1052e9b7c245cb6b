//! Tests the secure port: TLS versions and certificates, HTTP/2 limits, headers for browsers, and cut-off clients.

use crate::{
    harness::{Identity, PATIENCE, Server, options, plain_user, whole},
    http2::frame,
    peers::{Authority, Pair, Peer},
};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::{Request, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle::SniCertKey;
use rustls::{
    CipherSuite, SupportedCipherSuite, SupportedProtocolVersion, crypto::ring::cipher_suite::*,
    pki_types::CertificateDer, version,
};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.serving.tls_min_version = "VersionTLS13".to_owned();
    options.serving.disable_http2_serving = true;
    let server = pintle::start(options).await.unwrap();
    static OLD: [&SupportedProtocolVersion; 1] = [&version::TLS12];
    let old = Peer { versions: Some(&OLD), ..Peer::default() };
    assert!(old.connect(server.address()).await.is_err());
    assert_eq!(Peer::default().ask(server.address(), "/version", "").await.0, 200);
    let http2 = Peer { protocol: Some("h2"), ..Peer::default() };
    assert!(http2.connect(server.address()).await.is_err());
    server.stop().await.unwrap();
    let server = Server::start().await;
    assert_eq!(old.ask(server.address(), "/version", "").await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_chooses_the_cipher_suite_for_clients_with_aes() {
    type Case = (&'static [&'static SupportedProtocolVersion], &'static [SupportedCipherSuite], CipherSuite);
    static CASES: [Case; 4] = [
        (
            &[&version::TLS13],
            &[TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256],
            CipherSuite::TLS13_AES_128_GCM_SHA256,
        ),
        (
            &[&version::TLS13],
            &[TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_AES_128_GCM_SHA256],
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        ),
        (&[&version::TLS13], &[TLS13_AES_256_GCM_SHA384], CipherSuite::TLS13_AES_256_GCM_SHA384),
        (
            &[&version::TLS12],
            &[TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256],
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
    ];
    let server = Server::start().await;
    for (versions, suites, expected) in &CASES {
        let peer = Peer { suites: Some(suites), versions: Some(versions), ..Peer::default() };
        let stream = peer.connect(server.address()).await.unwrap();
        let chosen = stream.get_ref().1.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(chosen, *expected, "{suites:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_go_by_name_and_change_with_their_files() {
    let authority = Authority::new("ca");
    let pairs = [
        &["localhost", "default.example.com"][..],
        &["a.example.com"],
        &["*.b.example.com"],
        &["c.example.com"],
    ]
    .map(|names| authority.server(names));
    let rsa = authority.rsa_server("rsa.example.com");
    let pairs: Vec<Pair> = pairs.into_iter().chain([rsa]).collect();
    let mut paths = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    for (index, pair) in pairs.iter().enumerate() {
        let [cert, key] = ["crt", "key"].map(|kind| options.data_dir.join(format!("{index}.{kind}")));
        std::fs::write(&cert, pair.pem()).unwrap();
        std::fs::write(&key, pair.key_pem()).unwrap();
        paths.push((cert, key));
    }
    (options.tls_cert_file, options.tls_private_key_file) =
        (Some(paths[0].0.clone()), Some(paths[0].1.clone()));
    let named = |index: usize, names: &[&str]| SniCertKey {
        cert_file: paths[index].0.clone(),
        key_file: paths[index].1.clone(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    options.serving.tls_sni_cert_keys =
        vec![named(1, &[]), named(2, &[]), named(3, &["*.d.example.com", "e.example.com"]), named(4, &[])];
    let server = pintle::start(options).await.unwrap();
    let address = server.address();
    let shown = async |name: &str| -> CertificateDer<'static> {
        let peer = Peer { name: Some(name), ..Peer::default() };
        let stream = peer.connect(address).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
    };
    for (name, expected) in [
        ("a.example.com", 1),
        ("A.Example.com", 1),
        ("x.b.example.com", 2),
        ("y.x.b.example.com", 0),
        ("x.d.example.com", 3),
        ("e.example.com", 3),
        ("c.example.com", 3),
        ("default.example.com", 0),
        ("unknown.example.com", 0),
    ] {
        assert!(shown(name).await == pairs[expected].certificate, "{name}");
    }
    // A client that cannot use the key of the default gets a certificate whose key it can use.
    static TLS12: [&SupportedProtocolVersion; 1] = [&version::TLS12];
    static RSA: [SupportedCipherSuite; 1] = [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];
    let only_rsa = Peer { versions: Some(&TLS12), suites: Some(&RSA), ..Peer::default() };
    let stream = only_rsa.connect(address).await.unwrap();
    assert!(stream.get_ref().1.peer_certificates().unwrap()[0] == pairs[4].certificate);
    // A certificate without its key changes nothing; with the key, new connections get it.
    let next = authority.server(&["a.example.com"]);
    std::fs::write(&paths[1].0, next.pem()).unwrap();
    assert!(shown("a.example.com").await == pairs[1].certificate);
    std::fs::write(&paths[1].1, next.key_pem()).unwrap();
    let until_shown = async |name: &str, certificate: &CertificateDer<'static>| {
        let waited = timeout(PATIENCE, async {
            while shown(name).await != *certificate {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        waited.await.unwrap();
    };
    until_shown("a.example.com", &next.certificate).await;
    // Certificates are replaced although the files of others are missing or broken.
    std::fs::remove_file(&paths[2].0).unwrap();
    std::fs::write(&paths[3].1, "no key").unwrap();
    let next = authority.server(&["localhost", "default.example.com"]);
    std::fs::write(&paths[0].0, next.pem()).unwrap();
    std::fs::write(&paths[0].1, next.key_pem()).unwrap();
    until_shown("default.example.com", &next.certificate).await;
    assert!(shown("x.b.example.com").await == pairs[2].certificate);
    assert!(shown("e.example.com").await == pairs[3].certificate);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_told_what_they_may() {
    let server = Server::start_with(|options| {
        options.serving.strict_transport_security_directives =
            vec!["max-age=31536000".to_owned(), "includeSubDomains".to_owned()];
        options.serving.cors_allowed_origins = vec!["^https://good\\.example\\.com(:|$)".to_owned()];
    })
    .await;
    let ask = async |method: &str, origin: &str| {
        server.exchange(method, "/version", &[("origin", origin)], "").await
    };
    let good = ask("GET", "https://good.example.com:8443").await;
    assert_eq!(good.header("strict-transport-security"), "max-age=31536000; includeSubDomains");
    assert_eq!(good.header("access-control-allow-origin"), "https://good.example.com:8443");
    assert_eq!(good.header("access-control-allow-methods"), "POST, GET, OPTIONS, PUT, DELETE, PATCH");
    assert_eq!(good.header("access-control-allow-credentials"), "true");
    assert_eq!(good.header("access-control-expose-headers"), "Date");
    let preflight = ask("OPTIONS", "https://good.example.com").await;
    assert_eq!((preflight.status, preflight.text()), (204, ""));
    assert_eq!(preflight.header("cache-control"), "no-cache, private");
    for evil in ["https://good.example.com.evil.org", "http://good.example.com", "null"] {
        assert_eq!(ask("GET", evil).await.header("access-control-allow-origin"), "", "{evil}");
        assert_ne!(ask("OPTIONS", evil).await.status, 204, "{evil}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_of_nobody_ends_with_its_first_answer() {
    let server = Server::start_with(plain_user).await;
    let check = async |headers: &[(&str, &str)], status: u16, ends: bool| {
        let client = server.client(Identity::Nobody).await;
        let first = client.begin("GET", "/version", headers, whole("")).await.unwrap();
        assert_eq!(first.status(), status);
        drop(first);
        let mut served = 0;
        // The client notices the GOAWAY after some requests.
        while served < 1000 && client.begin("GET", "/version", headers, whole("")).await.is_ok() {
            served += 1;
        }
        assert_eq!(served < 1000, ends, "{headers:?}");
    };
    check(&[], 200, true).await;
    check(&[("authorization", "Bearer wrong")], 401, true).await;
    check(&[("authorization", "Bearer plain")], 200, false).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_closed_now_and_then() {
    let server = Server::start_with(|options| options.serving.goaway_chance = 0.02).await;
    let client = server.client(Identity::Admin).await;
    let mut served = 0;
    while client.begin("GET", "/version", &[], whole("")).await.is_ok() {
        served += 1;
        // The chance is 2 %: no GOAWAY in 3,000 requests is practically impossible.
        assert!(served < 3000);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_so_many_requests_at_once() {
    let server = Server::start_with(|options| options.serving.http2_max_streams_per_connection = 3).await;
    let client = server.client(Identity::Admin).await;
    let watch = "/api/v1/namespaces?watch=true";
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(client.watch(watch, &[]).await);
    }
    let fourth = client.begin("GET", "/version", &[], whole(""));
    assert!(timeout(Duration::from_millis(300), fourth).await.is_err(), "a fourth waits");
    drop(watches.pop());
    assert_eq!(client.send("GET /version").await.status, 200);
    server.stop().await;
}

/// Opens and resets streams at once, repeatedly (<https://nvd.nist.gov/vuln/detail/CVE-2023-44487>).
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_open_and_reset_requests_are_cut_off() {
    let server = Server::start_with(plain_user).await;
    let stream = Peer { protocol: Some("h2"), ..Peer::default() }.connect(server.address()).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let drained = tokio::spawn(async move {
        let mut answers = Vec::new();
        // The connection may end in any way.
        reader.read_to_end(&mut answers).await.ok();
    });
    let mut head = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    head.extend(frame(4, 0, 0, &[]));
    writer.write_all(&head).await.unwrap();
    // GET, https, a path and the header `authorization`, none of them added to the table.
    let mut block = vec![0x82, 0x87, 0x04, 8];
    block.extend(b"/version");
    block.extend([0x01, 1, b'x', 0x0f, 8, 12]);
    block.extend(b"Bearer plain");
    let mut opened = 0_u32;
    let attack = async {
        while opened < 1_000_000 {
            let mut batch = Vec::new();
            for _ in 0..50 {
                let id = 2 * opened + 1;
                batch.extend(frame(1, 0x05, id, &block));
                batch.extend(frame(3, 0, id, &8_u32.to_be_bytes()));
                opened += 1;
            }
            if writer.write_all(&batch).await.is_err() || writer.flush().await.is_err() {
                break;
            }
        }
    };
    timeout(PATIENCE, attack).await.unwrap();
    assert!(opened < 1_000_000, "{opened} requests were given up");
    timeout(PATIENCE, drained).await.unwrap().unwrap();
    server.assert_lives().await;
    server.stop().await;
}

/// As above, with resets after the server has started to handle the requests.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_reset_begun_requests_are_cut_off() {
    let server = Server::start_with(|options| options.serving.http2_max_streams_per_connection = 50).await;
    let client = server.client(Identity::Admin).await;
    // The read waits for a future version.
    let path = "/api/v1/namespaces?resourceVersion=9000000000";
    let mut given_up = 0;
    while given_up < 10_000 {
        let begun: Vec<_> = (0..40)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.begin("GET", path, &[], whole("")).await.map(drop) })
            })
            .collect();
        // When this request is answered, the earlier ones have started.
        if client.begin("GET", "/version", &[], whole("")).await.is_err() {
            break;
        }
        given_up += begun.len();
        begun.iter().for_each(|task| task.abort());
    }
    assert!((200..2_000).contains(&given_up), "{given_up} requests were given up");
    server.assert_lives().await;
    server.stop().await;
}

/// The clock is paused: it advances whenever all tasks wait.
#[tokio::test(flavor = "current_thread")]
async fn idle_connections_are_closed() {
    let server = Server::start_with(plain_user).await;
    let stream = Peer { protocol: Some("h2"), ..Peer::default() }.connect(server.address()).await.unwrap();
    let (mut sender, connection) =
        http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get(format!("https://{}/version", server.address()))
        .header("authorization", "Bearer plain")
        .body(Empty::new())
        .unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    let begun = tokio::time::Instant::now();
    tokio::time::pause();
    connection.await.unwrap().ok();
    let took = begun.elapsed();
    tokio::time::resume();
    assert!((Duration::from_secs(20)..Duration::from_secs(150)).contains(&took), "{took:?}");
    server.assert_lives().await;
    server.stop().await;
}
