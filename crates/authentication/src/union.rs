//! Combines authenticators.

use crate::{
    Anonymous, ClientCertificates, FrontProxy, group::with_authenticated_group,
    metrics::AuthenticationMetrics,
};
use pintle_auth::{
    BoxFuture,
    authn::{
        Authenticated, Authentication, Authenticator, Credentials, InvalidCredentials, TokenAuthenticator,
    },
};
use std::{sync::Arc, time::Instant};

/// Authenticates by a front proxy's headers, client certificates and tokens, in this order; a request without
/// credentials is anonymous. Invalid credentials of one kind do not keep the others from being tried, but a request
/// with invalid and no valid credentials is rejected, not anonymous.
#[derive(Default)]
pub struct Union {
    /// Front proxies.
    pub front_proxy: Option<FrontProxy>,
    /// Client certificates.
    pub certificates: Option<ClientCertificates>,
    /// The authenticators of bearer tokens, in order.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// The rule for anonymous requests.
    pub anonymous: Anonymous,
    /// The metrics to record.
    pub metrics: Option<AuthenticationMetrics>,
}

impl Union {
    async fn find(&self, credentials: &Credentials<'_>) -> Authentication {
        let mut wrong = None;
        let front_proxy = self.front_proxy.as_ref().map(|proxy| proxy.authenticate(credentials));
        if let Some(found) = front_proxy.and_then(|found| settle(found, &mut wrong)) {
            return Ok(Some(found));
        }
        let certificates = self.certificates.as_ref().map(|own| own.authenticate(credentials.certificates));
        if let Some(found) = certificates.and_then(|found| settle(found, &mut wrong)) {
            return Ok(Some(found));
        }
        if let Some(token) = credentials.bearer_token
            && !self.tokens.is_empty()
        {
            for authenticator in &self.tokens {
                let found = authenticator.authenticate_token(token, &[]).await;
                if let Some(mut found) = settle(found, &mut wrong) {
                    found.user = with_authenticated_group(found.user);
                    return Ok(Some(found));
                }
            }
            wrong.get_or_insert_with(|| InvalidCredentials::new("invalid bearer token".to_owned()));
        }
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.anonymous.authenticate(credentials.path)),
        }
    }
}

/// Returns the authenticated user; collects the errors of invalid credentials.
fn settle(found: Authentication, wrong: &mut Option<InvalidCredentials>) -> Option<Authenticated> {
    match found {
        Ok(found) => found,
        Err(error) => {
            *wrong = Some(match wrong.take() {
                None => error,
                Some(before) => before.and(error),
            });
            None
        }
    }
}

impl Authenticator for Union {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, Authentication> {
        Box::pin(async move {
            let Some(metrics) = &self.metrics else { return self.find(credentials).await };
            let began = Instant::now();
            let found = self.find(credentials).await;
            metrics.observe(&found, began.elapsed());
            found
        })
    }
}

/// Combines several token authenticators, in order.
#[derive(Default)]
pub struct TokenUnion(pub Vec<Arc<dyn TokenAuthenticator>>);

impl TokenAuthenticator for TokenUnion {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication> {
        Box::pin(async move {
            let mut wrong = None;
            for authenticator in &self.0 {
                let found = authenticator.authenticate_token(token, audiences).await;
                if let Some(mut found) = settle(found, &mut wrong) {
                    found.user = with_authenticated_group(found.user);
                    return Ok(Some(found));
                }
            }
            wrong.map_or(Ok(None), Err)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CaBundle,
        testing::{Authority, Leaf},
    };
    use http::{HeaderMap, HeaderValue};
    use pintle_auth::RequestHeaders;
    use pintle_machinery::UserInfo;
    use rustls_pki_types::CertificateDer;

    struct Tokens(&'static str);

    impl TokenAuthenticator for Tokens {
        fn authenticate_token<'a>(
            &'a self,
            token: &'a str,
            _: &'a [String],
        ) -> BoxFuture<'a, Authentication> {
            let name = format!("{token} by {}", self.0);
            let user = Arc::new(UserInfo { name, ..UserInfo::default() });
            let found = match token {
                "broken" => Err(InvalidCredentials::new(format!("broken at {}", self.0))),
                token if token.starts_with(self.0) => {
                    Ok(Some(Authenticated { user, ..Authenticated::default() }))
                }
                _ => Ok(None),
            };
            Box::pin(std::future::ready(found))
        }
    }

    #[tokio::test]
    async fn ways_are_tried_in_order() {
        let (clients, proxies) = (Authority::new("clients"), Authority::new("proxies"));
        let bundle = |authority: &Authority| Arc::new(CaBundle::new("test", &authority.pem()).unwrap());
        let union = Union {
            front_proxy: Some(FrontProxy::new(bundle(&proxies), Vec::new(), RequestHeaders::standard())),
            certificates: Some(ClientCertificates::new(bundle(&clients))),
            tokens: vec![Arc::new(Tokens("one")), Arc::new(Tokens("o")), Arc::new(Tokens("two"))],
            ..Union::default()
        };
        let client = [clients.sign(&Leaf::client("client"))];
        let proxy = [proxies.sign(&Leaf::client("proxy"))];
        let stranger = [Authority::new("clients").sign(&Leaf::client("stranger"))];
        let check = async |certificates: &[CertificateDer<'static>],
                           told: Option<&str>,
                           bearer_token: Option<&str>,
                           expected: Result<&str, &str>| {
            let mut headers = HeaderMap::new();
            if let Some(told) = told {
                headers.insert("x-remote-user", HeaderValue::from_str(told).unwrap());
            }
            let credentials = Credentials { certificates, bearer_token, headers: &headers, path: "/" };
            let found = union.authenticate(&credentials).await;
            let found = found.map(|found| found.unwrap().user.name.clone()).map_err(|error| error.reason);
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                other => panic!("{other:?}"),
            }
        };
        check(&[], None, None, Ok("system:anonymous")).await;
        check(&[], Some("admin"), None, Ok("system:anonymous")).await;
        check(&[], None, Some("one"), Ok("one by one")).await;
        check(&[], None, Some("other"), Ok("other by o")).await;
        check(&[], None, Some("x"), Err("invalid bearer token")).await;
        check(&[], None, Some("broken"), Err("broken at one, broken at o, broken at two")).await;
        check(&client, None, None, Ok("client")).await;
        check(&client, Some("admin"), Some("one"), Ok("client")).await;
        check(&proxy, Some("jane"), Some("one"), Ok("jane")).await;
        // A proxy that sends no user is not anonymous: its certificate is not valid for a client.
        check(&proxy, None, None, Err("unknown authority")).await;
        check(&stranger, None, None, Err("unknown authority")).await;
        check(&stranger, None, Some("two"), Ok("two by two")).await;
    }

    #[tokio::test]
    async fn anonymous_is_let_in_where_it_may() {
        let check = async |anonymous: Anonymous, path: &str, expected: bool| {
            let union = Union { anonymous, ..Union::default() };
            let headers = HeaderMap::new();
            let credentials = Credentials { certificates: &[], bearer_token: None, headers: &headers, path };
            let found = union.authenticate(&credentials).await.unwrap();
            assert_eq!(found.is_some(), expected, "{path}");
        };
        let at = |paths: &[&str]| Anonymous {
            enabled: true,
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        };
        check(Anonymous::default(), "/api", true).await;
        check(at(&["/livez", "/readyz"]), "/livez", true).await;
        check(at(&["/livez", "/readyz"]), "/livez/", false).await;
        check(at(&["/livez"]), "/livez/ping", false).await;
        check(Anonymous { enabled: false, paths: Vec::new() }, "/livez", false).await;
    }
}
