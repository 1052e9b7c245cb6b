//! Tests authentication by certificates, front proxies, issuers and webhooks, each over real TLS, with valid and
//! invalid credentials.

use crate::{
    harness::{PATIENCE, Server, options},
    peers::{Authority, Https, Pair, Peer},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::{OidcOptions, Options, RunError};
use pintle_jwt::SigningKey;
use pintle_machinery::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::io::AsyncWriteExt;

fn write(options: &Options, name: &str, text: &str) -> PathBuf {
    let path = options.data_dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Waits until a condition is true; fails after [`PATIENCE`].
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_the_files_authorities_are_believed() {
    let (old, new, other) = (Authority::new("old"), Authority::new("new"), Authority::new("old"));
    let mut file = PathBuf::new();
    let server = Server::start_with(|options| {
        file = write(options, "clients.pem", old.pem());
        options.client_ca_file = Some(file.clone());
    })
    .await;
    let address = server.address();
    let (by_old, by_new) = (old.client("jane", "a"), new.client("joe", "a"));
    let who = async |pair: Option<&Pair>| Peer { pair, ..Peer::default() }.who(address, "").await;
    assert_eq!(who(Some(&by_old)).await.as_deref(), Some("jane"));
    assert_eq!(who(None).await.as_deref(), Some("system:anonymous"));
    assert_eq!(who(Some(&old.client("root", "system:masters"))).await.as_deref(), Some("(administrator)"));
    // Invalid certificates get 401, and are never ignored.
    for bad in [
        &other.client("root", "system:masters"),
        &by_new,
        &old.client_until("root", "system:masters", -1),
        &old.server(&["127.0.0.1"]),
    ] {
        let (status, answer) = Peer { pair: Some(bad), ..Peer::default() }.ask(address, "/version", "").await;
        assert_eq!(status, 401);
        assert!(
            answer.ends_with(
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#
            ) || answer.contains("\"message\":\"Unauthorized\""),
            "{answer}"
        );
        assert!(!answer.to_lowercase().contains("www-authenticate"), "{answer}");
    }
    // The authority is replaced while the server runs, and published for extension servers.
    std::fs::write(&file, new.pem()).unwrap();
    until("the new authority is believed", async || who(Some(&by_new)).await.as_deref() == Some("joe")).await;
    assert_eq!(who(Some(&by_old)).await, None);
    let published = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    until("the new authority is published", async || {
        let data = server.send(&format!("GET {published}")).await.str_at("/data/client-ca-file");
        data.contains(new.pem().trim()) && !data.contains(old.pem().trim())
    })
    .await;
    // An invalid file changes nothing.
    std::fs::write(&file, "no certificate").unwrap();
    assert_eq!(who(Some(&by_new)).await.as_deref(), Some("joe"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn front_proxies_are_believed_and_nobody_else() {
    let (clients, proxies) = (Authority::new("clients"), Authority::new("proxies"));
    let server = Server::start_with(|options| {
        options.client_ca_file = Some(write(options, "clients.pem", clients.pem()));
        let proxy = &mut options.authentication.request_header;
        proxy.allowed_names = vec!["proxy".to_owned()];
        proxy.username_headers = vec!["X-Remote-User".to_owned()];
        proxy.group_headers = vec!["X-Remote-Group".to_owned()];
        proxy.extra_headers_prefix = vec!["X-Remote-Extra-".to_owned()];
        options.authentication.request_header.client_ca_file =
            Some(write(options, "proxies.pem", proxies.pem()));
    })
    .await;
    let address = server.address();
    let admin = "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n";
    let odd = "x-remote-user: admin\r\nX-REMOTE-GROUP: system:masters\r\nX-Remote-Group: a\r\n";
    let who = async |pair: Option<&Pair>, headers: &str| {
        Peer { pair, ..Peer::default() }.who(address, headers).await
    };
    let (proxy, client) = (proxies.client("proxy", "a"), clients.client("jane", "a"));
    assert_eq!(who(Some(&proxy), "X-Remote-User: jane\r\n").await.as_deref(), Some("jane"));
    assert_eq!(who(Some(&proxy), admin).await.as_deref(), Some("(administrator)"));
    for told in [admin, odd] {
        assert_eq!(who(None, told).await.as_deref(), Some("system:anonymous"));
        assert_eq!(who(Some(&client), told).await.as_deref(), Some("jane"));
        // Issued by the proxies' authority, but with another name; by another authority of the same name; expired.
        assert_eq!(who(Some(&proxies.client("eve", "a")), told).await, None);
        assert_eq!(who(Some(&Authority::new("proxies").client("proxy", "a")), told).await, None);
        assert_eq!(who(Some(&proxies.client_until("proxy", "a", -1)), told).await, None);
    }
    assert_eq!(who(Some(&proxy), "").await, None, "a proxy that tells nobody is nobody");
    let published = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let answer = server.send(&format!("GET {published}")).await;
    assert_eq!(answer.str_at("/data/requestheader-allowed-names"), r#"["proxy"]"#);
    assert_eq!(answer.str_at("/data/requestheader-username-headers"), r#"["X-Remote-User"]"#);
    assert_eq!(answer.str_at("/data/requestheader-extra-headers-prefix"), r#"["X-Remote-Extra-"]"#);
    assert_eq!(answer.str_at("/data/requestheader-client-ca-file"), proxies.pem());
    server.stop().await;
}

/// An OpenID Connect issuer.
struct Issuer {
    https: Https,
    key: SigningKey,
}

impl Issuer {
    async fn start() -> Issuer {
        let key =
            SigningKey::from_pem(rcgen::KeyPair::generate().unwrap().serialize_pem().as_bytes()).unwrap();
        let members = key.public().json_web_key();
        let mut json: Value = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        json["kid"] = key.public().id().into();
        let own_url: Arc<std::sync::OnceLock<String>> = Arc::default();
        let url = own_url.clone();
        let https = Https::start(Arc::new(move |_, path, _| {
            let url = url.get().unwrap();
            match path {
                "/.well-known/openid-configuration" => {
                    (200, json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string())
                }
                "/keys" => (200, json!({"keys": [json]}).to_string()),
                _ => (404, String::new()),
            }
        }))
        .await;
        own_url.set(https.url.clone()).unwrap();
        Issuer { https, key }
    }

    fn token(&self, audience: &str, name: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({"iss": self.https.url, "aud": audience, "sub": name, "exp": now + 600});
        self.key.sign_token(claims.to_string().as_bytes()).unwrap()
    }

    /// A configuration file that trusts this issuer.
    fn configuration(&self, prefix: &str) -> String {
        let ca = self.https.ca.replace('\n', "\n      ");
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer:\n    url: {}\n    \
             audiences: [me]\n    certificateAuthority: |\n      {ca}\n  claimMappings:\n    username: {{expression: \
             \"'{prefix}' + claims.sub\"}}\nanonymous: {{enabled: true, conditions: [{{path: /livez}}]}}\n",
            self.https.url
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_an_issuer_by_flags_are_believed() {
    let issuer = Issuer::start().await;
    let server = Server::start_with(|options| {
        options.authentication.oidc = OidcOptions {
            issuer_url: Some(issuer.https.url.clone()),
            client_id: Some("me".to_owned()),
            ca_file: Some(write(options, "issuer.pem", &issuer.https.ca)),
            signing_algs: vec!["ES256".to_owned()],
            ..OidcOptions::default()
        };
    })
    .await;
    let address = server.address();
    let who = async |token: &str| Peer::default().who(address, &bearer(token)).await;
    let good = issuer.token("me", "jane");
    until("the issuer has described itself", async || who(&good).await.is_some()).await;
    assert_eq!(who(&good).await, Some(format!("{}#jane", issuer.https.url)));
    let [header, payload, _] = good.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    for bad in [
        issuer.token("other", "jane"),
        format!("{none}.{payload}."),
        format!("{header}.{payload}.AAAA"),
        Issuer::start().await.token("me", "jane"),
        "not-a-token".to_owned(),
    ] {
        assert_eq!(who(&bad).await, None);
    }
    // Metrics have the results, and no credentials.
    let metrics = server.send("GET /metrics").await;
    let metrics = metrics.text();
    for expected in [
        "authentication_attempts{result=\"error\"}",
        "authentication_attempts{result=\"success\"}",
        "authenticated_user_requests{username=\"other\"}",
        "authentication_token_cache_request_total{status=\"hit\"}",
        "authentication_token_cache_fetch_total{status=\"error\"}",
        "apiserver_authentication_jwt_authenticator_latency_seconds_count",
    ] {
        assert!(metrics.contains(expected), "no {expected}");
    }
    assert!(!metrics.contains("jane") && !metrics.contains(&issuer.https.url));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_file_counts_as_it_changes() {
    let issuer = Issuer::start().await;
    let mut file = PathBuf::new();
    let server = Server::start_with(|options| {
        file = write(options, "authentication.yaml", &issuer.configuration("a:"));
        options.authentication.config_file = Some(file.clone());
    })
    .await;
    let address = server.address();
    let who = async |subject: &str| Peer::default().who(address, &bearer(&issuer.token("me", subject))).await;
    until("the issuer has described itself", async || who("jane").await.is_some()).await;
    assert_eq!(who("jane").await.as_deref(), Some("a:jane"));
    // Anonymous requests are accepted at the paths in the file.
    assert_eq!(Peer::default().ask(address, "/livez", "").await.0, 200);
    assert_eq!(Peer::default().ask(address, "/readyz", "").await.0, 401);
    std::fs::write(&file, issuer.configuration("b:")).unwrap();
    until("the new file is in force", async || who("joe").await.as_deref() == Some("b:joe")).await;
    // An invalid file changes nothing, and is counted.
    std::fs::write(&file, "no configuration").unwrap();
    let failures = "apiserver_authentication_config_controller_automatic_reloads_total{apiserver_id_hash=";
    until("the failure is counted", async || {
        let metrics = server.send("GET /metrics").await;
        let counted = |line: &str| line.starts_with(failures) && line.contains("status=\"failure\"");
        metrics.text().lines().any(counted)
    })
    .await;
    assert_eq!(who("jill").await.as_deref(), Some("b:jill"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_knows_tokens() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let https = Https::start(Arc::new(move |method, path, review: Value| {
        assert_eq!((method, path), ("POST", "/review"));
        assert_eq!(review["apiVersion"], "authentication.k8s.io/v1");
        counted.fetch_add(1, Ordering::SeqCst);
        let status = match review["spec"]["token"].as_str().unwrap() {
            "good" => json!({"authenticated": true, "user": {"username": "jane", "groups": ["a"]}}),
            "root" => json!({"authenticated": true, "user": {"username": "r", "groups": ["system:masters"]}}),
            "odd" => return (200, "[]".to_owned()),
            "broken" => return (400, "no".to_owned()),
            _ => json!({"authenticated": false, "error": "unknown"}),
        };
        (
            200,
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status})
                .to_string(),
        )
    }))
    .await;
    let server = Server::start_with(|options| {
        let ca = base64::engine::general_purpose::STANDARD.encode(&https.ca);
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             users: [{{name: u, user: {{}}}}]\nclusters: [{{name: k, cluster: {{server: '{}/review', \
             certificate-authority-data: {ca}}}}}]\n",
            https.url
        );
        options.authentication.webhook.config_file = Some(write(options, "webhook.yaml", &kubeconfig));
        options.authentication.webhook.version = "v1".parse().unwrap();
    })
    .await;
    let address = server.address();
    let who = async |token: &str| Peer::default().who(address, &bearer(token)).await;
    assert_eq!(who("good").await.as_deref(), Some("jane"));
    assert_eq!(who("root").await.as_deref(), Some("(administrator)"));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(who("good").await.as_deref(), Some("jane"));
    assert_eq!(asked.load(Ordering::SeqCst), 2, "answers are kept");
    for bad in ["bad", "odd", "broken"] {
        assert_eq!(who(bad).await, None, "{bad}");
    }
    // A token may be among the subprotocols of a web socket.
    let socket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: \
                  base64url.bearer.authorization.k8s.io.Z29vZA, v4.channel.k8s.io\r\n";
    assert_eq!(Peer::default().who(address, socket).await.as_deref(), Some("jane"));
    // It is tried after one in the header that is refused, and other credentials are tried beside a malformed one.
    let beside = |header: &str, protocol: &str| bearer(header) + &socket.replace("Z29vZA", protocol);
    let who_of = async |headers: String| Peer::default().who(address, &headers).await;
    assert_eq!(who_of(beside("bad", "Z29vZA")).await.as_deref(), Some("jane"));
    assert_eq!(who_of(beside("bad", "YmFk")).await, None);
    assert_eq!(who_of(beside("bad", "!")).await, None);
    assert_eq!(who_of(beside("good", "!")).await.as_deref(), Some("jane"));
    assert_eq!(who_of(socket.replace("Z29vZA", "!")).await, None);
    let plain = socket.replace("Upgrade: websocket\r\n", "");
    assert_eq!(Peer::default().who(address, &plain).await.as_deref(), Some("system:anonymous"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_is_not_waited_for_without_a_client() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/review", silent.local_addr().unwrap());
    let server = Server::start_with(|options| {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             users: [{{name: u, user: {{}}}}]\nclusters: [{{name: k, cluster: {{server: '{url}'}}}}]\n"
        );
        options.authentication.webhook.config_file = Some(write(options, "webhook.yaml", &kubeconfig));
    })
    .await;
    let address = server.address();
    let in_flight = async |expected: u32| {
        let metrics = server.send("GET /metrics").await;
        let series = "authentication_token_cache_active_fetch_count{status=\"in_flight\"}";
        metrics.text().lines().any(|line| line == format!("{series} {expected}"))
    };
    // A write is finished without its client, but not before its user is known.
    let waiting = ["GET", "POST"].map(|method| {
        tokio::spawn(async move {
            let request =
                format!("{method} /api/v1/namespaces HTTP/1.1\r\nHost: a\r\n{}\r\n", bearer(method));
            let mut stream = Peer::default().connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        })
    });
    until("both are waiting", async || in_flight(2).await).await;
    for client in waiting {
        client.abort();
    }
    until("nothing is waiting", async || in_flight(0).await).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_told_at_the_start() {
    let authority = Authority::new("both");
    let check = async |change: &dyn Fn(&mut Options), expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(dir.path());
        change(&mut options);
        match pintle::start(options).await {
            Err(RunError::Options(error)) => assert!(error.contains(expected), "{error}"),
            Err(other) => panic!("{other} instead of {expected}"),
            Ok(running) => {
                running.stop().await.unwrap();
                panic!("it started, instead of {expected}");
            }
        }
    };
    check(
        &|options| options.client_ca_file = Some(write(options, "ca.pem", "none")),
        // The administrator's authority is in the bundle as well; a file without a certificate is an error all the
        // same.
        "--client-ca-file",
    )
    .await;
    check(
        &|options| {
            options.client_ca_file = Some(write(options, "ca.pem", authority.pem()));
            options.authentication.request_header.client_ca_file = options.client_ca_file.clone();
        },
        "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates",
    )
    .await;
    check(
        &|options| options.authentication.config_file = Some(write(options, "a.yaml", "kind: A")),
        "failed to load authentication configuration from file",
    )
    .await;
    check(
        &|options| {
            let text =
                "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{}]\n";
            options.authentication.config_file = Some(write(options, "a.yaml", text));
        },
        "jwt[0].issuer.url: Required value",
    )
    .await;
    check(
        &|options| {
            let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
            options.authentication.config_file = Some(write(options, "a.yaml", text));
            options.authentication.oidc.issuer_url = Some("https://a".to_owned());
        },
        "authentication-config file and oidc-* flags are mutually exclusive",
    )
    .await;
    check(
        &|options| {
            let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n";
            options.authentication.config_file = Some(write(options, "a.yaml", text));
            options.authentication.anonymous_auth = Some(true);
        },
        "anonymous: Forbidden: --anonymous-auth flag cannot be set",
    )
    .await;
    check(
        &|options| options.authentication.oidc.client_id = Some("me".to_owned()),
        "oidc-issuer-url and oidc-client-id must be specified together",
    )
    .await;
    check(
        &|options| options.authentication.webhook.config_file = Some("/no/such/file".into()),
        "stat /no/such/file: no such file or directory",
    )
    .await;
    check(
        &|options| options.serving.tls_cipher_suites = vec!["TLS_RSA_WITH_RC4_128_SHA".to_owned()],
        "Cipher suite TLS_RSA_WITH_RC4_128_SHA is not secure",
    )
    .await;
    check(
        &|options| options.serving.tls_min_version = "VersionSSL30".to_owned(),
        "unknown tls version \"VersionSSL30\"",
    )
    .await;
}
