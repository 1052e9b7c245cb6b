//! Measures the authentication of a token that was seen before, and of one that was not.

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use pintle_auth::{BoxFuture, authn::TokenAuthenticator};
use pintle_jwt::SigningKey;
use pintle_machinery::Status;
use pintle_service_account::{
    Binding, Config, Expiration, Found, ObjectGetter, ObjectKind, Reference, ServiceAccountTokens,
    TokenIssuer, TokenKeys, TokenMetrics, TokenSpec,
};
use std::{
    future::Future,
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// Returns an object for every name, with the uid `1`. The time of a cache lookup is not measured.
struct EveryObject(Bytes);

impl ObjectGetter for EveryObject {
    fn find<'a>(
        &'a self,
        _: ObjectKind,
        _: &'a str,
        _: &'a str,
        _: bool,
    ) -> BoxFuture<'a, Result<Option<Found>, Status>> {
        Box::pin(std::future::ready(Ok(Some(Found { revision: 1, json: self.0.clone() }))))
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

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

fn benches(criterion: &mut Criterion) {
    let keys: [(&str, &[u8]); 2] = [
        ("RS256", include_bytes!("../../jwt/tests/keys/rsa-pkcs8.pem")),
        ("ES256", include_bytes!("../../jwt/tests/keys/p256-sec1.pem")),
    ];
    let reference = |name: &str| Reference { name: name.to_owned(), uid: "1".to_owned() };
    let binding = Binding::Pod(reference("web-0"), Some(reference("node-17")));
    let audiences = vec!["https://kubernetes.default.svc".to_owned()];
    for (algorithm, pem) in keys {
        let key = SigningKey::from_pem(pem).expect("the key is one");
        let keys = Arc::new(TokenKeys::new(vec![key.public().clone()], Some(key)));
        let issuer = TokenIssuer {
            issuer: "https://kubernetes.default.svc".to_owned(),
            keys: keys.clone(),
            audiences: audiences.clone(),
            ..TokenIssuer::default()
        };
        let account = reference("web");
        let spec = TokenSpec {
            namespace: "shop",
            service_account: &account,
            binding: &binding,
            audiences: &audiences,
            expiration: Expiration { reported: 3600, valid: 3600, warn_after: None },
            now: Timestamp::now(),
        };
        let judge = || {
            ServiceAccountTokens::new(Config {
                issuers: vec![issuer.issuer.clone()],
                keys: keys.clone(),
                audiences: audiences.clone(),
                lookup: true,
                objects: Arc::new(EveryObject(r#"{"metadata":{"uid":"1"}}"#.into())),
                metrics: Arc::new(TokenMetrics::new().expect("the names are fine")),
            })
        };
        let token = now(issuer.issue(&spec)).expect("it can sign").token;
        let mut group = criterion.benchmark_group(algorithm);
        group.bench_function("issue", |bencher| {
            bencher.iter(|| black_box(now(issuer.issue(black_box(&spec))).is_ok()));
        });
        group.bench_function("judge a new token", |bencher| {
            bencher.iter_batched(
                judge,
                |judge| black_box(now(judge.authenticate_token(black_box(&token), &[])).is_ok()),
                BatchSize::SmallInput,
            );
        });
        let judge = judge();
        group.bench_function("judge it again", |bencher| {
            bencher.iter(|| black_box(now(judge.authenticate_token(black_box(&token), &[])).is_ok()));
        });
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
