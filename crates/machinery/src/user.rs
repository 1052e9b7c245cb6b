//! The user of a request.

use std::collections::BTreeMap;

/// An authenticated user
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authentication-strategies>).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInfo {
    /// The user's name.
    pub name: String,
    /// The user's identity across renames; may be empty.
    pub uid: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group whose members are allowed everything.
pub const SYSTEM_MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user of requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The user of the server's own requests.
pub const APISERVER_USER: &str = "system:apiserver";

/// The key in [`UserInfo::extra`] under which an authenticator stores the identity of the credential.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

impl UserInfo {
    /// Whether the user is in the group.
    pub fn is_member_of(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
