//! Adds the group of all authenticated users.

use pintle_machinery::{
    UserInfo,
    user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED},
};
use std::sync::Arc;

/// Adds `system:authenticated` to the user's groups. Anonymous users, and users that an authenticator has placed in
/// `system:unauthenticated`, stay as they are.
#[must_use]
pub(crate) fn with_authenticated_group(user: Arc<UserInfo>) -> Arc<UserInfo> {
    if user.name == ANONYMOUS || user.is_member_of(AUTHENTICATED) || user.is_member_of(UNAUTHENTICATED) {
        return user;
    }
    let mut user = Arc::unwrap_or_clone(user);
    user.groups.push(AUTHENTICATED.to_owned());
    Arc::new(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_in_one_of_the_two_groups() {
        let check = |name: &str, groups: &[&str], expected: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = UserInfo { name: name.to_owned(), groups, ..UserInfo::default() };
            assert_eq!(with_authenticated_group(Arc::new(user)).groups, expected);
        };
        check("jane", &[], &["system:authenticated"]);
        check("jane", &["a"], &["a", "system:authenticated"]);
        check("jane", &["system:authenticated", "a"], &["system:authenticated", "a"]);
        check("jane", &["system:unauthenticated"], &["system:unauthenticated"]);
        check("system:anonymous", &["a"], &["a"]);
    }
}
