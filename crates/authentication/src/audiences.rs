//! Adapts authenticators whose tokens have no audience.

use pintle_auth::{
    BoxFuture,
    authn::{Authentication, TokenAuthenticator},
};
use std::sync::Arc;

/// Wraps an authenticator that ignores audiences: its tokens are valid for the server's own audiences.
pub struct AudienceAgnostic {
    authenticator: Arc<dyn TokenAuthenticator>,
    own: Arc<[String]>,
}

impl AudienceAgnostic {
    /// `own` are the server's audiences (`--api-audiences`).
    pub fn new(authenticator: Arc<dyn TokenAuthenticator>, own: Arc<[String]>) -> AudienceAgnostic {
        AudienceAgnostic { authenticator, own }
    }
}

impl TokenAuthenticator for AudienceAgnostic {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication> {
        if audiences.is_empty() {
            return self.authenticator.authenticate_token(token, audiences);
        }
        Box::pin(async move {
            let met: Vec<String> =
                audiences.iter().filter(|audience| self.own.contains(audience)).cloned().collect();
            if met.is_empty() {
                return Ok(None);
            }
            let found = self.authenticator.authenticate_token(token, &[]).await?;
            Ok(found.map(|mut found| {
                found.audiences = met;
                found
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use pintle_auth::authn::Authenticated;
    use std::future::ready;

    /// Accepts every token for which no audience is requested.
    struct Any;

    impl TokenAuthenticator for Any {
        fn authenticate_token<'a>(
            &'a self,
            _: &'a str,
            audiences: &'a [String],
        ) -> BoxFuture<'a, Authentication> {
            Box::pin(ready(Ok(audiences.is_empty().then(Authenticated::default))))
        }
    }

    #[test]
    fn tokens_are_valid_for_the_servers_own_audiences() {
        let own = Arc::from(["api".to_owned(), "vault".to_owned()]);
        let authenticator = AudienceAgnostic::new(Arc::new(Any), own);
        let check = |audiences: &[&str], expected: Option<&[&str]>| {
            let audiences: Vec<String> = audiences.iter().map(|audience| (*audience).to_owned()).collect();
            let found = authenticator.authenticate_token("t", &audiences).now_or_never().unwrap().unwrap();
            let expected: Option<Vec<String>> =
                expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(found.map(|found| found.audiences), expected, "{audiences:?}");
        };
        check(&[], Some(&[]));
        check(&["vault", "other"], Some(&["vault"]));
        check(&["other"], None);
    }
}
