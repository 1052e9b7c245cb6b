//! All ways to prove who one is, one after the other.

use crate::{
    ClientCertificates, TokenFile,
    authn::{Authentication, Authenticator, Credentials},
};
use pintle_machinery::{
    UserInfo,
    user::{ANONYMOUS, UNAUTHENTICATED},
};
use std::sync::{Arc, LazyLock};

/// Tries client certificates, then static tokens; who shows nothing is anonymous.
#[derive(Default)]
pub struct Union {
    /// Static tokens.
    pub tokens: Option<TokenFile>,
}

static ANONYMOUS_USER: LazyLock<Arc<UserInfo>> = LazyLock::new(|| {
    Arc::new(UserInfo {
        name: ANONYMOUS.to_owned(),
        groups: vec![UNAUTHENTICATED.to_owned()],
        ..UserInfo::default()
    })
});

impl Authenticator for Union {
    fn authenticate(&self, credentials: &Credentials<'_>) -> Authentication {
        if let Some(user) = credentials.certificates.first().and_then(|leaf| ClientCertificates.user(leaf)) {
            return Authentication::User(Arc::new(user));
        }
        match credentials.bearer_token {
            None => Authentication::User(ANONYMOUS_USER.clone()),
            Some(token) => match self.tokens.as_ref().and_then(|tokens| tokens.user(token)) {
                Some(user) => Authentication::User(user.clone()),
                None => Authentication::Invalid,
            },
        }
    }
}
