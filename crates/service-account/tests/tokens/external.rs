//! Tests of tokens that a program behind a socket signs.

use crate::objects::{ISSUER, Objects};
use jiff::Timestamp;
use pintle_auth::authn::TokenAuthenticator;
use pintle_jwt_signer::{JwtSigner, SignerKey};
use pintle_machinery::json;
use pintle_service_account::{
    Binding, Config, Expiration, ExternalSigner, ExternalSignerMetrics, ObjectKind, OpenIdMetadata,
    Reference, ServiceAccountTokens, TokenIssuer, TokenKeys, TokenMetrics, TokenSpec,
};
use std::{path::Path, sync::Arc};

/// A server whose tokens the signer at a socket signs.
struct Server {
    issuer: TokenIssuer,
    tokens: ServiceAccountTokens,
    metrics: Arc<ExternalSignerMetrics>,
    open_id: OpenIdMetadata,
}

impl Server {
    async fn start(socket: &Path) -> Result<Server, String> {
        let metrics = Arc::new(ExternalSignerMetrics::new().unwrap());
        let signer = ExternalSigner::connect(&socket.display().to_string(), metrics.clone()).await;
        let keys = Arc::new(TokenKeys::external(signer.map_err(|error| error.to_string())?));
        let audiences = vec!["own".to_owned()];
        let objects = Arc::new(Objects::default());
        objects.put(ObjectKind::ServiceAccount, "default", "bot", json!({"metadata": {"uid": "bot-1"}}));
        let tokens = ServiceAccountTokens::new(Config {
            issuers: vec![ISSUER.to_owned()],
            keys: keys.clone(),
            audiences: audiences.clone(),
            lookup: true,
            objects,
            metrics: Arc::new(TokenMetrics::new().unwrap()),
        });
        let open_id = OpenIdMetadata::new(ISSUER, None, "10.0.0.1:6443", keys.clone()).unwrap();
        let issuer = TokenIssuer { issuer: ISSUER.to_owned(), keys, audiences, ..TokenIssuer::default() };
        Ok(Server { issuer, tokens, metrics, open_id })
    }

    async fn issue(&self) -> Result<String, String> {
        let spec = TokenSpec {
            namespace: "default",
            service_account: &Reference { name: "bot".to_owned(), uid: "bot-1".to_owned() },
            binding: &Binding::None,
            audiences: &self.issuer.audiences,
            expiration: Expiration { reported: 3600, valid: 3600, warn_after: None },
            now: Timestamp::now(),
        };
        self.issuer.issue(&spec).await.map(|issued| issued.token).map_err(|error| error.to_string())
    }

    async fn judge(&self, token: &str) -> Result<String, String> {
        let found = self.tokens.authenticate_token(token, &[]).await;
        found.map(|found| found.unwrap().user.name.clone()).map_err(|error| error.to_string())
    }

    /// The values of a metric, each with its labels.
    fn counted(&self, name: &str) -> Vec<String> {
        let collectors = self.metrics.collectors();
        let families = collectors.iter().flat_map(|collector| collector.collect());
        let mut found = families.filter(|family| family.name() == format!("apiserver_externaljwt_{name}"));
        let family = found.next().unwrap();
        let texts = family.get_metric().iter().map(|metric| {
            let labels: Vec<&str> = metric.get_label().iter().map(|label| label.value()).collect();
            format!("{} {}", labels.join(","), metric.get_counter().get_value())
        });
        let mut texts: Vec<String> = texts.collect();
        texts.sort_unstable();
        texts
    }
}

#[tokio::test]
async fn a_signer_signs_and_tells_its_keys() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("signer.sock");
    // The signer may start after the server.
    let (signer, server) = tokio::join!(async { JwtSigner::start(&socket).unwrap() }, Server::start(&socket));
    let server = server.unwrap();
    let token = server.issue().await.unwrap();
    let bot = Ok("system:serviceaccount:default:bot".to_owned());
    assert_eq!(server.judge(&token).await, bot);
    let keys: pintle_machinery::Value = serde_json::from_str(&server.open_id.keys().unwrap()).unwrap();
    assert_eq!((&keys["keys"][0]["kid"], &keys["keys"][0]["crv"]), (&json!("key-1"), &json!("P-256")));
    assert!((3500..=3600).contains(&server.open_id.max_age_seconds()));

    // A new key is fetched when a token with its id comes, and not again for the next one.
    signer.state().keys.insert(0, SignerKey::generate("key-2").unwrap());
    assert_eq!(signer.state().fetches, 1);
    let newer = server.issue().await.unwrap();
    assert_eq!((server.judge(&newer).await, server.judge(&token).await), (bot.clone(), bot.clone()));
    assert_eq!(signer.state().fetches, 2);

    // Tokens of a key that is gone are no longer accepted, although their signature was verified before.
    signer.state().keys.truncate(1);
    let mut other = SignerKey::generate("key-3").unwrap();
    other.is_excluded = true;
    signer.state().keys.push(other);
    let unknown = token.split_once('.').unwrap().1;
    let unknown = format!("eyJhbGciOiJFUzI1NiIsImtpZCI6InVua25vd24ifQ.{unknown}");
    let none = Err("invalid signature, no keys found".to_owned());
    assert_eq!(server.judge(&unknown).await, none);
    assert_eq!(server.judge(&token).await, none);
    assert_eq!(server.judge(&newer).await, bot);
    let published = server.open_id.keys().unwrap();
    assert!(published.contains("key-2") && !published.contains("key-3"), "{published}");

    // Keys that are not published sign nothing.
    signer.state().keys.swap(0, 1);
    let excluded =
        "while validating header: key used for signing JWT (kid: key-3) is excluded from OIDC discovery docs";
    assert_eq!(server.issue().await, Err(excluded.to_owned()));
    signer.state().failure = Some(tonic::Status::unavailable("locked"));
    let failed = "while signing jwt: rpc error: code = Unavailable desc = locked";
    assert_eq!(server.issue().await, Err(failed.to_owned()));
    assert_eq!(server.counted("sign_request_total"), ["OK 2", "Unavailable 1", "unknown-non-grpc 1"]);
    assert_eq!(server.counted("fetch_keys_request_total"), ["OK 4"]);
}

#[tokio::test]
async fn keys_are_fetched_again_when_the_signer_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("signer.sock");
    let signer = JwtSigner::start(&socket).unwrap();
    signer.state().refresh_hint_seconds = 1;
    let _server = Server::start(&socket).await.unwrap();
    let fetched = async {
        while signer.state().fetches < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), fetched).await.unwrap();
}

#[tokio::test]
async fn answers_that_cannot_be_used_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("signer.sock");
    let signer = JwtSigner::start(&socket).unwrap();
    let refused = async |expected: &str| {
        let error = Server::start(&socket).await.err().unwrap();
        assert!(error.ends_with(expected), "{error}");
        error
    };
    signer.state().max_token_expiration_seconds = 599;
    refused("max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)")
        .await;
    signer.state().max_token_expiration_seconds = 600;
    signer.state().refresh_hint_seconds = 0;
    let error = refused("found invalid refresh hint (0s)").await;
    assert_eq!(
        error,
        "while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: while \
         fetching token verification keys: found invalid refresh hint (0s)"
    );
    signer.state().refresh_hint_seconds = 60;
    signer.state().keys[0].id = "x".repeat(1025);
    refused("xxx\"").await;
    let keys = std::mem::take(&mut signer.state().keys);
    refused("found no keys").await;
    signer.state().keys = keys;
    signer.state().keys[0].id = "key".to_owned();
    let server = Server::start(&socket).await.unwrap();
    for (header, expected) in [
        ("no JSON", "while parsing header JSON: "),
        (r#"{"alg":"ES256","kid":"key"}"#, "bad type"),
        (r#"{"alg":"ES256","typ":"JWT"}"#, "key id missing"),
        (r#"{"alg":"none","kid":"key","typ":"JWT"}"#, "bad signing algorithm \"none\""),
        (
            r#"{"alg":"ES256","kid":"key","typ":"JWT","jku":"x"}"#,
            "while parsing header JSON: json: unknown field \"jku\"",
        ),
    ] {
        signer.state().header = Some(header.to_owned());
        let error = server.issue().await.unwrap_err();
        assert!(error.starts_with(&format!("while validating header: {expected}")), "{error}");
    }
}
