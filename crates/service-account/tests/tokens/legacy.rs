//! Tests of tokens in secrets.

use crate::objects::Judge;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use pintle_machinery::{Value, json};
use pintle_service_account::ObjectKind;

const BOT: &str = "system:serviceaccount:default:bot";

fn claims() -> Value {
    json!({
        "iss": "kubernetes/serviceaccount", "sub": BOT,
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "s",
        "kubernetes.io/serviceaccount/service-account.name": "bot",
        "kubernetes.io/serviceaccount/service-account.uid": "bot-1",
    })
}

fn secret(token: &str, labels: Value) -> Value {
    json!({"metadata": {"uid": "s-1", "labels": labels}, "data": {"token": STANDARD.encode(token)}})
}

fn today() -> String {
    Timestamp::now().to_zoned(TimeZone::UTC).date().to_string()
}

#[tokio::test]
async fn a_token_is_good_as_long_as_its_secret_has_it() {
    let judge = Judge::new(true);
    let token = judge.sign(&claims());
    let account = |secrets: Value| {
        let account = json!({"metadata": {"uid": "bot-1"}, "secrets": secrets});
        judge.objects.put(ObjectKind::ServiceAccount, "default", "bot", account);
    };
    let put = |secret: Value| judge.objects.put(ObjectKind::Secret, "default", "s", secret);
    let check = async |expected: Result<&str, &str>| {
        let found = judge.judge(&token).await;
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    };
    check(Err("Token has been invalidated")).await;
    put(secret("another", json!({})));
    check(Err("Token does not match server's copy")).await;
    put(secret(&token, json!({})));
    check(Err("serviceaccounts \"bot\" not found")).await;
    account(json!([]));
    check(Ok(BOT)).await;
    assert_eq!(
        judge.objects.labels(),
        [("default/s/s-1/kubernetes.io/legacy-token-last-used".to_owned(), today())]
    );
    account(json!([{"name": "s"}]));
    put(secret(&token, json!({"kubernetes.io/legacy-token-last-used": today()})));
    check(Ok(BOT)).await;
    let tomorrow = Timestamp::now().to_zoned(TimeZone::UTC).date() + 1.day();
    put(secret(&token, json!({"kubernetes.io/legacy-token-last-used": tomorrow.to_string()})));
    check(Ok(BOT)).await;
    assert_eq!(judge.objects.labels().len(), 1);
    put(secret(&token, json!({"kubernetes.io/legacy-token-invalid-since": "2020-01-01"})));
    let marked = judge.judge(&token).await.unwrap_err();
    assert!(marked.starts_with(
        "the token in secret default/s for service account default/bot has been marked invalid."
    ));
    assert!(!marked.contains(&token));
    // The event of the refused request tells it as well.
    let told = ("authentication.k8s.io/legacy-token-invalidated", "s/default".to_owned());
    assert!(judge.remarks(&token).await.annotations.contains(&told));
    assert_eq!(judge.objects.labels().len(), 3);
    let mut deleted = secret(&token, json!({}));
    deleted["metadata"]["deletionTimestamp"] = json!("2999-01-01T00:00:00Z");
    put(deleted);
    check(Err("Token has been invalidated")).await;
    put(secret(&token, json!({})));
    judge.objects.put(ObjectKind::ServiceAccount, "default", "bot", json!({"metadata": {"uid": "bot-2"}}));
    check(Err("ServiceAccount UID (bot-2) does not match claim (bot-1)")).await;
    let counted = [
        "legacy_manual_token_uses_total",
        "legacy_auto_token_uses_total",
        "invalid_legacy_auto_token_uses_total",
    ];
    assert_eq!(counted.map(|name| judge.counted(name)), [1, 2, 2]);
}

#[tokio::test]
async fn claims_have_to_be_whole() {
    let judge = Judge::new(false);
    let check = async |claim: &str, value: &str, expected: Result<&str, &str>| {
        let mut claims = claims();
        claims[claim] = json!(value);
        let found = judge.judge(&judge.sign(&claims)).await;
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{claim}");
    };
    let prefix = "kubernetes.io/serviceaccount";
    check("x", "y", Ok(BOT)).await;
    check("sub", "", Err("sub claim is missing")).await;
    check("sub", "system:serviceaccount:default:eve", Err("sub claim is invalid")).await;
    check("sub", "bot", Err("sub claim is invalid")).await;
    check(&format!("{prefix}/namespace"), "", Err("namespace claim is missing")).await;
    check(&format!("{prefix}/namespace"), "other", Err("sub claim is invalid")).await;
    check(&format!("{prefix}/secret.name"), "", Err("secretName claim is missing")).await;
    check(&format!("{prefix}/service-account.name"), "", Err("serviceAccountName claim is missing")).await;
    check(&format!("{prefix}/service-account.uid"), "", Err("serviceAccountUID claim is missing")).await;
}
