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
