//! Tests with an issuer in this process, over TLS, and tokens of this and other issuers.

use super::*;
use crate::config::{self, AuthenticationConfiguration};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use pintle_auth::authn::{Authentication, TokenAuthenticator};
use pintle_dialer::EgressSelector;
use pintle_jwt::SigningKey;
use pintle_machinery::{UserInfo, Value, ValueExt, json};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// Documents by path. Requests are recorded, with their tokens.
#[derive(Default)]
struct Site {
    documents: HashMap<String, String>,
    asked: Vec<(String, Option<String>)>,
}

struct Issuer {
    url: String,
    ca: String,
    site: Arc<Mutex<Site>>,
    key: SigningKey,
}

fn new_key() -> SigningKey {
    SigningKey::from_pem(rcgen::KeyPair::generate().unwrap().serialize_pem().as_bytes()).unwrap()
}

fn key_set(keys: &[&SigningKey]) -> String {
    let keys: Vec<Value> = keys
        .iter()
        .map(|key| {
            let mut json = json!({"kid": key.public().id(), "use": "sig"});
            for (name, value) in key.public().json_web_key() {
                json.set(name, value);
            }
            json
        })
        .collect();
    json!({"keys": keys}).to_string()
}

impl Issuer {
    async fn start() -> Issuer {
        let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], own.signing_key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let site: Arc<Mutex<Site>> = Arc::default();
        let served = site.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, site) = (acceptor.clone(), served.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        let mut buffer = [0; 1024];
                        match stream.read(&mut buffer).await {
                            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                            _ => return,
                        }
                    }
                    let request = String::from_utf8(request).unwrap();
                    let path = request.split(' ').nth(1).unwrap().to_owned();
                    let token = request.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
                    let document = {
                        let mut site = site.lock();
                        site.asked.push((path.clone(), token.map(str::to_owned)));
                        site.documents.get(&path).cloned()
                    };
                    let (status, body) = match document {
                        Some(body) => ("200 OK", body),
                        None => ("404 Not Found", String::new()),
                    };
                    let head = format!(
                        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        let issuer = Issuer { url, ca: own.cert.pem(), site, key: new_key() };
        issuer.publish(&[&issuer.key]);
        issuer
    }

    fn publish(&self, keys: &[&SigningKey]) {
        let description = json!({"issuer": self.url, "jwks_uri": format!("{}/keys", self.url)});
        let mut site = self.site.lock();
        site.documents.insert("/.well-known/openid-configuration".to_owned(), description.to_string());
        site.documents.insert("/keys".to_owned(), key_set(keys));
    }

    fn asked(&self, path: &str) -> usize {
        self.site.lock().asked.iter().filter(|(asked, _)| asked == path).count()
    }

    /// The configuration with further mappings and rules as YAML.
    fn config(&self, rest: &str) -> AuthenticationConfiguration {
        let indented = self.ca.replace('\n', "\n      ");
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer:\n    url: {}\n    \
             audiences: [me, you]\n    audienceMatchPolicy: MatchAny\n    certificateAuthority: |\n      {indented}\n{rest}",
            self.url
        );
        config::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    async fn issuers(&self, rest: &str) -> Issuers {
        let config = self.config(rest);
        let expressions = config::validate(&config, &[]).unwrap();
        let metrics = JwtMetrics::new("test").unwrap();
        let issuers =
            Issuers::start(&config, expressions, Algorithm::ALL.to_vec(), metrics, EgressSelector::default())
                .unwrap();
        ready(&issuers).await;
        issuers
    }

    fn claims(&self, more: &Value) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = json!({"iss": self.url, "aud": "me", "sub": "jane", "exp": now + 600});
        let members = claims.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        members.retain(|_, value| !value.is_null());
        claims
    }

    fn token(&self, more: Value) -> String {
        self.key.sign_token(self.claims(&more).to_string().as_bytes()).unwrap()
    }
}

async fn ready(issuers: &Issuers) {
    tokio::time::timeout(Duration::from_secs(20), async {
        while issuers.health().is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{:?}", issuers.health()));
}

async fn judge(issuers: &Issuers, token: &str) -> Authentication {
    issuers.authenticate_token(token, &[]).await
}

async fn user(issuers: &Issuers, token: &str) -> UserInfo {
    (*judge(issuers, token).await.unwrap().expect("a user").user).clone()
}

async fn refusal(issuers: &Issuers, token: &str) -> String {
    let error = judge(issuers, token).await.expect_err("a refusal").reason;
    assert!(!error.contains(token));
    error
}

const PLAIN: &str =
    "  claimMappings: {username: {claim: sub, prefix: 'oidc:'}, groups: {claim: groups, prefix: 'g:'}}\n";

#[tokio::test]
async fn tokens_say_who_users_are() {
    let issuer = Issuer::start().await;
    let issuers = issuer.issuers(PLAIN).await;
    let token = issuer.token(json!({"groups": ["a", "b"], "jti": "7", "aud": ["other", "you"]}));
    let found = user(&issuers, &token).await;
    assert_eq!(found.name, "oidc:jane");
    assert_eq!(found.groups, ["g:a", "g:b"]);
    assert_eq!(found.extra["authentication.kubernetes.io/credential-id"], ["JTI=7"]);
    assert_eq!(user(&issuers, &issuer.token(json!({"groups": "a"}))).await.groups, ["g:a"]);
    assert_eq!(issuer.asked("/keys"), 1);
    // Tokens of other issuers, and texts that are not tokens, are not recognized.
    let others = issuer.token(json!({"iss": "https://other.example.com"}));
    for unknown in [others.as_str(), "", "a.b.c", "plain", "a.b.c.d", "{\"payload\":\"\"}"] {
        assert_eq!(judge(&issuers, unknown).await, Ok(None), "{unknown}");
    }
}

#[tokio::test]
async fn tokens_that_do_not_hold_are_refused() {
    let issuer = Issuer::start().await;
    let issuers = issuer.issuers(PLAIN).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let rows = [
        (json!({"aud": "other"}), "expected audience in [\"me\" \"you\"] got [\"other\"]"),
        (json!({"aud": null}), "expected audience in"),
        (
            json!({"aud": {"a": "me"}}),
            "json: cannot unmarshal object into Go struct field idToken.aud of type []string",
        ),
        (json!({"exp": now - 1}), "token is expired"),
        (json!({"exp": null}), "token is expired"),
        (json!({"exp": "never"}), "json: invalid number literal, trying to unmarshal"),
        (json!({"nbf": now + 90}), "before the nbf (not before) time"),
        (json!({"sub": null}), "parse username claims \"sub\": claim not present"),
        (json!({"sub": 7}), "json: cannot unmarshal number into Go struct field idToken.sub of type string"),
        (json!({"groups": [1]}), "parse groups claim \"groups\""),
    ];
    for (claims, expected) in rows {
        let error = refusal(&issuers, &issuer.token(claims)).await;
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
    assert_eq!(user(&issuers, &issuer.token(json!({"nbf": now + 30}))).await.name, "oidc:jane");
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let issuer = Issuer::start().await;
    let issuers = issuer.issuers(PLAIN).await;
    let good = issuer.token(json!({}));
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let claims = |more: Value| encode(&issuer.claims(&more).to_string());
    let admin = claims(json!({"sub": "admin", "groups": ["system:masters"]}));
    let id = issuer.key.public().id();
    let with_alg = |alg: &str| encode(&format!("{{\"alg\":\"{alg}\",\"kid\":\"{id}\"}}"));
    let stranger = new_key();
    let rows = [
        format!("{}.{admin}.", with_alg("none")),
        format!("{}.{admin}.", with_alg("None")),
        format!("{}.{admin}.{signature}", with_alg("HS256")),
        format!("{}.{payload}.{signature}", with_alg("RS256")),
        format!("{header}.{admin}.{signature}"),
        format!("{header}.{payload}."),
        format!("{}.{payload}.{signature}", encode("{}")),
        format!("{}.{payload}.{signature}", encode("{\"alg\":\"ES256\",\"crit\":[\"exp\"]}")),
        stranger.sign_token(issuer.claims(&json!({})).to_string().as_bytes()).unwrap(),
    ];
    for token in rows {
        let error = refusal(&issuers, &token).await;
        assert!(error.starts_with("oidc: verify token: "), "{error}");
    }
    assert_eq!(user(&issuers, &good).await.name, "oidc:jane");
    let huge = format!("{header}.{}.{signature}", "A".repeat(1 << 20));
    assert_eq!(judge(&issuers, &huge).await, Ok(None));
}

#[tokio::test]
async fn keys_are_fetched_when_they_are_needed_and_no_more_often() {
    let issuer = Issuer::start().await;
    let issuers = Arc::new(issuer.issuers(PLAIN).await);
    assert_eq!(user(&issuers, &issuer.token(json!({}))).await.name, "oidc:jane");
    // Another key, with many concurrent requests.
    let next = new_key();
    issuer.publish(&[&issuer.key, &next]);
    let token = next.sign_token(issuer.claims(&json!({})).to_string().as_bytes()).unwrap();
    let stranger = new_key();
    let forged = stranger.sign_token(issuer.claims(&json!({})).to_string().as_bytes()).unwrap();
    let waiting: Vec<_> = (0..50)
        .map(|number| {
            let issuers = issuers.clone();
            let token = if number % 2 == 0 { token.clone() } else { forged.clone() };
            tokio::spawn(async move { judge(&issuers, &token).await.is_ok() })
        })
        .collect();
    let mut good = 0;
    for answer in waiting {
        good += usize::from(answer.await.unwrap());
    }
    assert_eq!((good, issuer.asked("/keys")), (25, 2));
}

#[tokio::test]
async fn expressions_say_who_users_are() {
    let issuer = Issuer::start().await;
    let issuers = issuer
        .issuers(
            r#"  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.exp - claims.iat <= 3600.0', message: too long}
  claimMappings:
    username: {expression: "claims.realm.name + ':' + claims.sub"}
    groups: {expression: "claims.roles.split(',')"}
    uid: {expression: 'claims.?id.orValue("none")'}
    extra:
    - {key: example.com/tenant, valueExpression: claims.tenant}
    - {key: example.com/dotted, valueExpression: claims.a__dot__b}
    - {key: example.com/empty, valueExpression: '""'}
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: 'reserved names'}
  - {expression: "user.groups.all(group, group != 'system:masters')", message: 'reserved groups'}
  - {expression: "user.extra.example__dot__com__slash__tenant[0] != 'banned'", message: 'banned'}
"#,
        )
        .await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let base = |more: Value| {
        let mut claims = json!({
            "hd": "example.com", "iat": now, "realm": {"name": "r"}, "roles": "a,b", "tenant": ["t"], "a.b": "c",
        });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        issuer.token(claims)
    };
    let found = user(&issuers, &base(json!({}))).await;
    assert_eq!((found.name.as_str(), found.uid.as_str()), ("r:jane", "none"));
    assert_eq!(found.groups, ["a", "b"]);
    assert_eq!(found.extra["example.com/tenant"], ["t"]);
    assert_eq!(found.extra["example.com/dotted"], ["c"]);
    assert!(!found.extra.contains_key("example.com/empty"));
    let rows = [
        (json!({"hd": "evil.com"}), "required claim hd value does not match"),
        (json!({"iat": now - 7200}), "failed: too long"),
        (json!({"realm": {"name": "system"}}), "failed: reserved names"),
        (json!({"roles": "system:masters"}), "failed: reserved groups"),
        (json!({"tenant": "banned"}), "failed: banned"),
        (json!({"tenant": {"a": 1}}), "expression must return a string or a list of strings"),
        (json!({"realm": {}}), "error evaluating username claim expression"),
        (json!({"realm": {"name": 7}}), "error evaluating username claim expression"),
    ];
    for (claims, expected) in rows {
        let error = refusal(&issuers, &base(claims)).await;
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
}

#[tokio::test]
async fn addresses_have_to_be_verified() {
    let issuer = Issuer::start().await;
    let issuers = issuer.issuers("  claimMappings: {username: {claim: email, prefix: ''}}\n").await;
    let with =
        |verified: Value| issuer.token(json!({"email": "jane@example.com", "email_verified": verified}));
    assert_eq!(user(&issuers, &with(json!(true))).await.name, "jane@example.com");
    assert_eq!(user(&issuers, &with(Value::Null)).await.name, "jane@example.com");
    assert_eq!(refusal(&issuers, &with(json!(false))).await, "oidc: email not verified");
    assert!(
        refusal(&issuers, &with(json!("true")))
            .await
            .contains("json: cannot unmarshal string into Go value of type bool")
    );
}

#[tokio::test]
async fn distributed_groups_are_fetched() {
    let issuer = Issuer::start().await;
    let issuers = issuer.issuers(PLAIN).await;
    let sources = json!({"one": {"endpoint": format!("{}/groups", issuer.url), "access_token": "secret"}});
    let token = issuer.token(json!({"_claim_names": {"groups": "one"}, "_claim_sources": sources}));
    let groups = |audience: &str| issuer.token(json!({"groups": ["many"], "aud": audience}));
    issuer.site.lock().documents.insert("/groups".to_owned(), groups("me"));
    assert_eq!(user(&issuers, &token).await.groups, ["g:many"]);
    let shown = issuer.site.lock().asked.iter().find(|(path, _)| path == "/groups").cloned().unwrap().1;
    assert_eq!(shown.as_deref(), Some("secret"));
    issuer.site.lock().documents.insert("/groups".to_owned(), groups("other"));
    let error = refusal(&issuers, &token).await;
    assert!(error.contains("verify distributed claim token") && !error.contains("secret"), "{error}");
    issuer.site.lock().documents.remove("/groups");
    assert!(
        refusal(&issuers, &token).await.contains("error while getting distributed claim JWT: 404 Not Found")
    );
}

#[tokio::test]
async fn issuers_are_exchanged_when_the_new_ones_answer() {
    let (old, new) = (Issuer::start().await, Issuer::start().await);
    let issuers = old.issuers(PLAIN).await;
    assert_eq!(user(&issuers, &old.token(json!({}))).await.name, "oidc:jane");
    assert_eq!(judge(&issuers, &new.token(json!({}))).await, Ok(None));
    let config = new.config(PLAIN);
    issuers.replace(&config, config::validate(&config, &[]).unwrap()).await.unwrap();
    assert_eq!(user(&issuers, &new.token(json!({}))).await.name, "oidc:jane");
    assert_eq!(judge(&issuers, &old.token(json!({}))).await, Ok(None));
}

#[tokio::test]
async fn an_issuer_that_is_another_is_not_believed() {
    let issuer = Issuer::start().await;
    let other = json!({"issuer": "https://other.example.com", "jwks_uri": format!("{}/keys", issuer.url)});
    issuer.site.lock().documents.insert("/.well-known/openid-configuration".to_owned(), other.to_string());
    let config = issuer.config(PLAIN);
    let expressions = config::validate(&config, &[]).unwrap();
    let metrics = JwtMetrics::new("test").unwrap();
    let issuers =
        Issuers::start(&config, expressions, Algorithm::ALL.to_vec(), metrics, EgressSelector::default())
            .unwrap();
    while !issuers.health().unwrap_err().contains("issuer did not match") {
        tokio::task::yield_now().await;
    }
    assert_eq!(refusal(&issuers, &issuer.token(json!({}))).await, "oidc: authenticator not initialized");
}
