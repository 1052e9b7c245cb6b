//! The users that service accounts are
//! (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/>).

use pintle_machinery::{UserInfo, user::AUTHENTICATED};
use std::collections::BTreeMap;

/// What the names of all these users begin with.
pub const USERNAME_PREFIX: &str = "system:serviceaccount:";
/// The group of all service accounts.
pub const ALL_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The key in a user's extra under which the token is told.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
pub(crate) const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
pub(crate) const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
pub(crate) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
pub(crate) const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// The name of an account's user.
pub fn username(namespace: &str, name: &str) -> String {
    format!("{USERNAME_PREFIX}{namespace}:{name}")
}

/// The namespace and the account of such a name.
pub fn split_username(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(USERNAME_PREFIX)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups that an account's user is in, besides that of all who are authenticated.
pub fn groups(namespace: &str) -> [String; 2] {
    [ALL_SERVICE_ACCOUNTS.to_owned(), format!("{ALL_SERVICE_ACCOUNTS}:{namespace}")]
}

/// An account's user.
pub(crate) fn user(namespace: &str, name: &str, uid: &str, extra: BTreeMap<String, Vec<String>>) -> UserInfo {
    let mut groups = groups(namespace).to_vec();
    groups.push(AUTHENTICATED.to_owned());
    UserInfo { name: username(namespace, name), uid: uid.to_owned(), groups, extra }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_accounts() {
        assert_eq!(split_username(&username("default", "bot")), Some(("default", "bot")));
        for name in [
            "",
            "bot",
            "system:serviceaccount:default",
            "system:serviceaccount::bot",
            "system:serviceaccount:a:b:c",
        ] {
            assert_eq!(split_username(name), None, "{name}");
        }
    }
}
