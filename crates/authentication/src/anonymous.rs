//! Authenticates anonymous requests
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests>).

use pintle_auth::authn::Authenticated;
use pintle_machinery::{
    UserInfo,
    user::{ANONYMOUS, UNAUTHENTICATED},
};
use std::sync::{Arc, LazyLock};

/// The rule for requests without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anonymous {
    /// Whether anonymous requests are accepted at all.
    pub enabled: bool,
    /// The request paths at which they are accepted; an empty list accepts all paths.
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
    /// The anonymous user, if the rule accepts the path.
    pub(crate) fn authenticate(&self, path: &str) -> Option<Authenticated> {
        let is_let_in = self.enabled && (self.paths.is_empty() || self.paths.iter().any(|own| own == path));
        is_let_in.then(|| Authenticated { user: USER.clone(), ..Authenticated::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::Anonymous;

    #[test]
    fn requests_are_anonymous_at_the_accepted_paths() {
        let check = |enabled: bool, paths: &[&str], path: &str, expected: bool| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            let found = Anonymous { enabled, paths }.authenticate(path);
            assert_eq!(found.is_some(), expected, "{path}");
            if let Some(found) = found {
                assert_eq!(found.user.name, "system:anonymous");
                assert_eq!(found.user.groups, ["system:unauthenticated"]);
            }
        };
        check(true, &[], "/api", true);
        check(false, &[], "/api", false);
        check(true, &["/livez"], "/livez", true);
        check(true, &["/livez"], "/livez/ping", false);
        check(false, &["/livez"], "/livez", false);
    }
}
