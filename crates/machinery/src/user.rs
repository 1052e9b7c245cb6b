//! Who makes a request.

use std::collections::BTreeMap;

/// A user as authentication found it
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authentication-strategies>).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInfo {
    /// The user's name.
    pub name: String,
    /// The user's identity across renames; may be empty.
    pub uid: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// More that an authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group whose members may do everything.
pub const SYSTEM_MASTERS: &str = "system:masters";
/// The group of all who were authenticated.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of all others.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user that a request without credentials is made by.
pub const ANONYMOUS: &str = "system:anonymous";
/// The user that the server's own parts are.
pub const APISERVER_USER: &str = "system:apiserver";

/// What an authenticator tells about the credential that was shown, under this name in [`UserInfo::extra`].
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

impl UserInfo {
    /// Whether the user is in the group.
    pub fn is_member_of(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
