//! All ways to prove who one is, one after the other.

use crate::{
    BoxFuture, ClientCertificates,
    authn::{
        Authenticated, Authentication, Authenticator, Credentials, InvalidCredentials, TokenAuthenticator,
    },
};
use pintle_machinery::{
    UserInfo,
    user::{ANONYMOUS, UNAUTHENTICATED},
};
use std::sync::{Arc, LazyLock};

/// Tries client certificates, then tokens; who shows nothing is anonymous.
#[derive(Default)]
pub struct Union {
    /// Who knows tokens, in the order they are asked.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
}

static ANONYMOUS_USER: LazyLock<Arc<UserInfo>> = LazyLock::new(|| {
    Arc::new(UserInfo {
        name: ANONYMOUS.to_owned(),
        groups: vec![UNAUTHENTICATED.to_owned()],
        ..UserInfo::default()
    })
});

impl Authenticator for Union {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, Authentication> {
        Box::pin(async move {
            if let Some(user) =
                credentials.certificates.first().and_then(|leaf| ClientCertificates.user(leaf))
            {
                return Ok(Some(Authenticated { user: Arc::new(user), ..Authenticated::default() }));
            }
            let Some(token) = credentials.bearer_token else {
                return Ok(Some(Authenticated { user: ANONYMOUS_USER.clone(), ..Authenticated::default() }));
            };
            let mut wrong = InvalidCredentials("invalid bearer token".to_owned());
            for authenticator in &self.tokens {
                match authenticator.authenticate_token(token, &[]).await {
                    Ok(Some(authenticated)) => return Ok(Some(authenticated)),
                    Ok(None) => {}
                    Err(error) => wrong = error,
                }
            }
            Err(wrong)
        })
    }
}
