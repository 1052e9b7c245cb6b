//! Tests of tokens that are bound to objects.

use crate::objects::{ISSUER, Judge, OTHER_KEY};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{Timestamp, ToSpan};
use pintle_auth::authn::TokenAuthenticator;
use pintle_jwt::SigningKey;
use pintle_machinery::{Value, json};
use pintle_service_account::{Binding, Expiration, ObjectKind, Reference, TokenIssuer, TokenKeys, TokenSpec};
use std::sync::Arc;

const BOT: &str = "system:serviceaccount:default:bot";

fn reference(name: &str, uid: &str) -> Reference {
    Reference { name: name.to_owned(), uid: uid.to_owned() }
}

fn object(uid: &str) -> Value {
    json!({"metadata": {"uid": uid}})
}

/// An authenticator with an account `bot`, a pod, a secret and a node.
fn judge() -> Judge {
    let judge = Judge::new(true);
    for (kind, namespace, name) in [
        (ObjectKind::ServiceAccount, "default", "bot"),
        (ObjectKind::Pod, "default", "p"),
        (ObjectKind::Secret, "default", "s"),
        (ObjectKind::Node, "", "n"),
    ] {
        judge.objects.put(kind, namespace, name, object(&format!("{name}-1")));
    }
    judge
}

/// The claims of a valid token, with changes.
fn claims(changes: Value) -> Value {
    let now = Timestamp::now().as_second();
    let mut claims = json!({
        "aud": ["own"], "iss": ISSUER, "sub": BOT, "exp": now + 600, "iat": now, "nbf": now, "jti": "id",
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "bot", "uid": "bot-1"}},
    });
    merge(&mut claims, changes);
    claims
}

fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, value) in changes {
                match value.is_null() {
                    true => drop(into.remove(&key)),
                    false => merge(into.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (into, changes) => *into = changes,
    }
}

fn bound(kind: &str, name: &str, uid: &str) -> Value {
    json!({"kubernetes.io": {kind: {"name": name, "uid": uid}}})
}

#[tokio::test]
async fn who_a_token_is_for_and_where_they_are_is_told() {
    let judge = judge();
    let issuer = TokenIssuer {
        issuer: ISSUER.to_owned(),
        keys: Arc::new(TokenKeys::new(Vec::new(), Some(SigningKey::from_pem(OTHER_KEY).unwrap()))),
        audiences: vec!["own".to_owned()],
        ..TokenIssuer::default()
    };
    let check = async |binding: Binding, expected: &[(&str, &str)]| {
        let issued = issuer
            .issue(&TokenSpec {
                namespace: "default",
                service_account: &reference("bot", "bot-1"),
                binding: &binding,
                audiences: &["x".to_owned(), "also own".to_owned()],
                expiration: Expiration { reported: 600, valid: 600, warn_after: None },
                now: Timestamp::now(),
            })
            .await
            .unwrap();
        let found = judge.tokens.authenticate_token(&issued.token, &[]).await.unwrap().unwrap();
        assert_eq!((found.user.name.as_str(), found.user.uid.as_str()), (BOT, "bot-1"));
        let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
        assert_eq!(found.user.groups, groups);
        assert_eq!(found.audiences, ["also own"]);
        let shown_to = ["y", "also own", "x"].map(str::to_owned);
        let found = judge.tokens.authenticate_token(&issued.token, &shown_to).await.unwrap().unwrap();
        assert_eq!(found.audiences, ["also own", "x"], "the order is that of the request");
        let extra: Vec<_> =
            found.user.extra.iter().map(|(key, values)| (key.as_str(), values[0].as_str())).collect();
        let mut all = vec![("authentication.kubernetes.io/credential-id", issued.credential_id.as_str())];
        all.extend(expected);
        assert_eq!(extra, all);
        assert!(issued.credential_id.starts_with("JTI="));
    };
    check(Binding::None, &[]).await;
    check(Binding::Secret(reference("s", "s-1")), &[]).await;
    check(
        Binding::Node(reference("n", "n-1")),
        &[("authentication.kubernetes.io/node-name", "n"), ("authentication.kubernetes.io/node-uid", "n-1")],
    )
    .await;
    check(
        Binding::Pod(reference("p", "p-1"), Some(reference("gone", ""))),
        &[
            ("authentication.kubernetes.io/node-name", "gone"),
            ("authentication.kubernetes.io/pod-name", "p"),
            ("authentication.kubernetes.io/pod-uid", "p-1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn claims_are_judged_in_the_reference_s_words() {
    let judge = judge();
    let now = Timestamp::now().as_second();
    let check = async |changes: Value, expected: Result<&str, &str>| {
        let shown = changes.to_string();
        let token = judge.sign(&claims(changes));
        // The second time the signature is cached.
        for _ in 0..2 {
            let found = judge.judge(&token).await;
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{shown}");
        }
    };
    let good = Ok(BOT);
    check(json!({}), good).await;
    check(json!({"iss": "https://before"}), good).await;
    check(json!({"aud": "also own"}), good).await;
    check(json!({"aud": null}), good).await;
    check(json!({"exp": null, "iat": null, "nbf": null, "jti": null}), good).await;
    check(json!({"exp": now - 30, "nbf": now + 30, "iat": now + 30}), good).await;
    check(json!({"sub": "somebody"}), good).await;

    check(json!({"iss": "https://other"}), Ok("")).await;
    check(json!({"iss": null}), Ok("")).await;
    check(json!({"iss": 5}), Ok("")).await;

    check(json!({"exp": now - 61}), Err("service account token has expired")).await;
    check(json!({"nbf": now + 120}), Err("service account token is not valid yet")).await;
    check(json!({"iat": now + 120}), Err("service account token is issued in the future")).await;
    let audiences =
        "token audiences [\"x\" \"y\"] is invalid for the target audiences [\"own\" \"also own\"]";
    check(json!({"aud": ["x", "y"]}), Err(audiences)).await;
    check(json!({"kubernetes.io": null}), Err("resource name may not be empty")).await;
    let nowhere = Err("the server could not find the requested resource");
    check(json!({"kubernetes.io": {"namespace": null}}), nowhere).await;
    let date = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
    check(json!({"exp": "soon"}), Err(date)).await;
    check(
        json!({"kubernetes.io": {"serviceaccount": {"name": "eve"}}}),
        Err("serviceaccounts \"eve\" not found"),
    )
    .await;
    check(json!({"kubernetes.io": {"namespace": "other"}}), Err("serviceaccounts \"bot\" not found")).await;
    check(
        json!({"kubernetes.io": {"serviceaccount": {"uid": "bot-2"}}}),
        Err("service account UID (bot-1) does not match claim (bot-2)"),
    )
    .await;

    check(bound("pod", "p", "p-1"), good).await;
    check(bound("secret", "s", "s-1"), good).await;
    check(bound("node", "n", "n-1"), good).await;
    check(bound("pod", "q", "p-1"), Err("service account token has been invalidated")).await;
    check(bound("secret", "t", "s-1"), Err("service account token has been invalidated")).await;
    check(bound("node", "m", "n-1"), Err("service account token has been invalidated")).await;
    let mismatch = |kind: &str, uid: &str| {
        format!("{kind} UID ({uid}-1) does not match service account {kind} ref claim (other)")
    };
    check(bound("pod", "p", "other"), Err(&mismatch("pod", "p"))).await;
    check(bound("secret", "s", "other"), Err(&mismatch("secret", "s"))).await;
    check(bound("node", "n", "other"), Err(&mismatch("node", "n"))).await;
    // All bound objects are checked, except the node of a pod.
    let mut both = bound("pod", "p", "p-1");
    merge(&mut both, bound("secret", "t", "s-1"));
    check(both, Err("service account token has been invalidated")).await;
    let mut node = bound("pod", "p", "p-1");
    merge(&mut node, bound("node", "gone", "gone-1"));
    check(node, good).await;
}

#[tokio::test]
async fn what_no_key_of_ours_signed_is_refused() {
    let judge = judge();
    let payload = URL_SAFE_NO_PAD.encode(claims(json!({"jti": "forged"})).to_string());
    let good = judge.sign(&claims(json!({})));
    let parts: Vec<_> = good.split('.').collect();
    let check = async |header: &str, payload: &str, signature: &str, expected: Result<&str, &str>| {
        let token = [&*URL_SAFE_NO_PAD.encode(header), payload, signature].join(".");
        let found = judge.judge(&token).await;
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{header}");
    };
    let wrong = Err("go-jose/go-jose: error in cryptographic primitive");
    let kid = judge.key.public().id();
    check(r#"{"alg":"none"}"#, parts[1], "", wrong).await;
    check(r#"{"alg":"HS256"}"#, parts[1], parts[2], wrong).await;
    check(r#"{"alg":"RS256"}"#, parts[1], parts[2], wrong).await;
    check(r#"{}"#, parts[1], parts[2], wrong).await;
    check(&format!(r#"{{"alg":"ES256","kid":"{kid}"}}"#), &payload, parts[2], wrong).await;
    check(r#"{"alg":"ES256","kid":"x"}"#, parts[1], parts[2], Err("invalid signature, no keys found")).await;
    // A malformed token is left to other authenticators.
    check("[]", parts[1], parts[2], Ok("")).await;
    check(r#"{"alg":"ES256","alg":"ES256"}"#, parts[1], parts[2], Ok("")).await;
    check(r#"{"alg":"ES256"}"#, "", parts[2], Ok("")).await;
    assert_eq!(judge.judge(&format!("{good}.")).await.as_deref(), Ok(""));
    // White space behind the signature is no part of it.
    assert_eq!(judge.judge(&format!("{} ", good)).await.as_deref(), Ok(BOT));
    let stranger = SigningKey::from_pem(include_bytes!("../../../jwt/tests/keys/p521-sec1.pem")).unwrap();
    let theirs = stranger.sign_token(claims(json!({})).to_string().as_bytes()).unwrap();
    assert_eq!(judge.judge(&theirs).await, Err("invalid signature, no keys found".to_owned()));
    let long = judge.sign(&claims(json!({"x": "x".repeat(100_000)})));
    assert_eq!(judge.judge(&long).await.as_deref(), Ok(""));
    assert_eq!(judge.judge(&good).await.as_deref(), Ok(BOT));
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to_and_not_before() {
    let judge = judge();
    let token = judge.sign(&claims(bound("pod", "p", "p-1")));
    let invalidated = Err("service account token has been invalidated".to_owned());
    let deleted = |seconds: i64| {
        let at = Timestamp::now() + seconds.seconds();
        json!({"metadata": {"uid": "p-1", "deletionTimestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}})
    };
    let put = |object: Value| judge.objects.put(ObjectKind::Pod, "default", "p", object);
    assert_eq!(judge.judge(&token).await.as_deref(), Ok(BOT));
    put(deleted(30));
    assert_eq!(judge.judge(&token).await.as_deref(), Ok(BOT));
    put(deleted(-50));
    assert_eq!(judge.judge(&token).await.as_deref(), Ok(BOT));
    put(deleted(-61));
    assert_eq!(judge.judge(&token).await, invalidated);
    put(object("p-2"));
    assert!(judge.judge(&token).await.unwrap_err().contains("p-2"));
    judge.objects.remove(ObjectKind::Pod, "default", "p");
    assert_eq!(judge.judge(&token).await, invalidated);
    put(object("p-1"));
    assert_eq!(judge.judge(&token).await.as_deref(), Ok(BOT));
    judge.objects.remove(ObjectKind::ServiceAccount, "default", "bot");
    assert_eq!(judge.judge(&token).await, Err("serviceaccounts \"bot\" not found".to_owned()));
}

#[tokio::test]
async fn the_store_is_asked_only_for_what_the_cache_lacks() {
    let judge = judge();
    let token = judge.sign(&claims(bound("pod", "p", "p-1")));
    for _ in 0..10 {
        judge.judge(&token).await.unwrap();
    }
    assert_eq!(judge.objects.consistent_reads(), 0);
    judge.objects.put(ObjectKind::ServiceAccount, "default", "new", object("new-1"));
    judge.objects.hide_from_cache(ObjectKind::ServiceAccount, "default", "new");
    let account = json!({"kubernetes.io": {"serviceaccount": {"name": "new", "uid": "new-1"}}});
    let token = judge.sign(&claims(account));
    assert_eq!(judge.judge(&token).await.as_deref(), Ok("system:serviceaccount:default:new"));
    assert_eq!(judge.objects.consistent_reads(), 1);
}

#[tokio::test]
async fn extended_tokens_and_tokens_without_an_audience_are_counted() {
    let judge = judge();
    let now = Timestamp::now().as_second();
    let warn = |after: i64| claims(json!({"kubernetes.io": {"warnafter": after}}));
    let stale = judge.remarks(&judge.sign(&warn(now - 10))).await;
    let [(key, remark)] = &*stale.annotations else { panic!("{stale:?}") };
    assert_eq!(*key, "authentication.k8s.io/stale-token");
    let begin = format!("subject: {BOT}, seconds after warning threshold: ");
    let seconds: i64 = remark.strip_prefix(&begin).unwrap().parse().unwrap();
    assert!((10..100).contains(&seconds));
    judge.judge(&judge.sign(&warn(now + 100))).await.unwrap();
    judge.judge(&judge.sign(&warn(now + 101))).await.unwrap();
    let without_audience = judge.remarks(&judge.sign(&claims(json!({"aud": null})))).await;
    assert_eq!(without_audience.annotations, [("authentication.k8s.io/legacy-token", BOT.to_owned())]);
    let counted =
        ["stale_tokens_total", "valid_tokens_total", "legacy_tokens_total"].map(|name| judge.counted(name));
    assert_eq!(counted, [1, 2, 1]);
}
