//! The users of service accounts (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/>).

use pintle_machinery::{UserInfo, user::AUTHENTICATED};
use std::collections::BTreeMap;

/// The prefix of all service accounts' user names.
pub const USERNAME_PREFIX: &str = "system:serviceaccount:";
/// The group of all service accounts.
pub const ALL_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The key of the credential id in a user's extra fields.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
pub(crate) const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
pub(crate) const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// The key of the name of the node that a token is bound to, in a user's extra fields.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
pub(crate) const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// The user name of a service account.
pub fn username(namespace: &str, name: &str) -> String {
    format!("{USERNAME_PREFIX}{namespace}:{name}")
}

/// The namespace and the name of the service account with this user name.
pub fn split_username(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(USERNAME_PREFIX)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups of a service account's user, besides the group of all authenticated users.
pub fn groups(namespace: &str) -> [String; 2] {
    [ALL_SERVICE_ACCOUNTS.to_owned(), format!("{ALL_SERVICE_ACCOUNTS}:{namespace}")]
}

/// The user of a service account.
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
