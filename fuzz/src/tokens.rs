//! Fuzzes bearer tokens.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_auth::{BoxFuture, authn::TokenAuthenticator};
use pintle_jwt::{Algorithm, MAX_TOKEN_LENGTH, SigningKey, Token, public_keys_from_pem};
use pintle_machinery::Status;
use pintle_service_account::{
    BootstrapTokens, Config, Found, ObjectGetter, ObjectKind, ServiceAccountTokens, TokenKeys, TokenMetrics,
};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, Waker},
};

const KEY: &[u8] = include_bytes!("../../crates/jwt/tests/keys/p256-sec1.pem");

/// A lookup of objects with one service account and no other object.
struct OneAccount;

impl ObjectGetter for OneAccount {
    fn find<'a>(
        &'a self,
        kind: ObjectKind,
        namespace: &'a str,
        name: &'a str,
        _: bool,
    ) -> BoxFuture<'a, Result<Option<Found>, Status>> {
        let is_there = kind == ObjectKind::ServiceAccount && (namespace, name) == ("default", "bot");
        let json = br#"{"metadata":{"uid":"1"}}"#.as_slice().into();
        Box::pin(std::future::ready(Ok(is_there.then_some(Found { revision: 1, json }))))
    }

    fn label_secret<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        _: (&'static str, String),
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

struct Judge {
    key: SigningKey,
    accounts: ServiceAccountTokens,
    bootstrap: BootstrapTokens,
}

static JUDGE: LazyLock<Judge> = LazyLock::new(|| {
    let key = SigningKey::from_pem(KEY).expect("the key is one");
    let keys = TokenKeys::new(vec![key.public().clone()], None);
    let audiences = vec!["own".to_owned()];
    let accounts = ServiceAccountTokens::new(Config {
        issuers: vec!["me".to_owned()],
        keys: Arc::new(keys),
        audiences: audiences.clone(),
        lookup: true,
        objects: Arc::new(OneAccount),
        metrics: Arc::new(TokenMetrics::new().expect("the names are fine")),
    });
    Judge { key, accounts, bootstrap: BootstrapTokens::new(Arc::new(OneAccount), audiences) }
});

/// An unsigned token authenticates no user, also when it is cached; a parsed token has the fields of its text. The data
/// is a token, or the three parts of one before their encoding, one per line.
pub(crate) fn token(data: &[u8]) {
    let _ = public_keys_from_pem(data);
    if let Ok(text) = std::str::from_utf8(data) {
        encoded(text);
    }
    let parts: Vec<_> =
        data.splitn(3, |byte| *byte == b'\n').map(|part| URL_SAFE_NO_PAD.encode(part)).collect();
    encoded(&parts.join("."));
}

fn encoded(text: &str) {
    if let Ok(token) = Token::parse(text) {
        assert!(text.len() <= MAX_TOKEN_LENGTH && text.matches('.').count() == 2);
        // White space within a token is skipped once its issuer is known.
        if !text.contains(char::is_whitespace) {
            assert_eq!(Token::peek(text).as_ref(), Some(&token.payload));
        }
        assert!(
            token.algorithm.is_none_or(|algorithm| Algorithm::parse(algorithm.as_str()) == Some(algorithm))
        );
    }
    for _ in 0..2 {
        let own = now(JUDGE.accounts.authenticate_token(text, &[]));
        assert!(!matches!(own, Ok(Some(_))), "nobody signed this");
        assert_eq!(now(JUDGE.bootstrap.authenticate_token(text, &[])), Ok(None));
    }
}

/// Signed claims authenticate only the account that they name, with the same result each time.
pub(crate) fn claims(data: &[u8]) {
    let token = JUDGE.key.sign_token(data).expect("signing works");
    let found = now(JUDGE.accounts.authenticate_token(&token, &[]));
    assert_eq!(found, now(JUDGE.accounts.authenticate_token(&token, &[])));
    if let Ok(Some(found)) = found {
        assert_eq!(found.user.name, "system:serviceaccount:default:bot");
        assert_eq!(found.user.uid, "1");
        assert!(found.audiences.iter().all(|audience| audience == "own") && !found.audiences.is_empty());
        let shown_to_another = now(JUDGE.accounts.authenticate_token(&token, &["nobody".to_owned()]));
        assert!(shown_to_another.is_err());
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}
