//! Who shows nothing
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests>).

use crate::authn::Authenticated;
use pintle_machinery::{
    UserInfo,
    user::{ANONYMOUS, UNAUTHENTICATED},
};
use std::sync::{Arc, LazyLock};

/// Whether requests without credentials are let in, and at which paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anonymous {
    /// Whether they are at all.
    pub enabled: bool,
    /// The paths, as they are requested, at which they are; none given are all.
    pub paths: Vec<String>,
}

impl Default for Anonymous {
    fn default() -> Anonymous {
        Anonymous { enabled: true, paths: Vec::new() }
    }
}

static USER: LazyLock<Arc<UserInfo>> = LazyLock::new(|| {
    Arc::new(UserInfo {
        name: ANONYMOUS.to_owned(),
        groups: vec![UNAUTHENTICATED.to_owned()],
        ..UserInfo::default()
    })
});

impl Anonymous {
    /// The anonymous user, where it is let in.
    pub(crate) fn authenticate(&self, path: &str) -> Option<Authenticated> {
        let is_let_in = self.enabled && (self.paths.is_empty() || self.paths.iter().any(|own| own == path));
        is_let_in.then(|| Authenticated { user: USER.clone(), ..Authenticated::default() })
    }
}
