//! Fuzzes the files of authorization: configurations and policies.

use pintle_auth::authz::{Attributes, Authorizer};
use pintle_authorization::{AbacAuthorizer, AuthorizationConfiguration};
use pintle_machinery::UserInfo;
use std::{
    future::Future,
    path::Path,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// A valid configuration has authorizers with distinct names, and equals its second parse; an invalid one has an error.
pub(crate) fn configuration(data: &[u8]) {
    match AuthorizationConfiguration::parse(data) {
        Ok(configuration) => {
            let mut names: Vec<_> = configuration.authorizers.iter().map(|own| &own.name).collect();
            assert!(!names.is_empty());
            names.sort();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
            assert_eq!(AuthorizationConfiguration::parse(data).as_ref(), Ok(&configuration));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// No policy applies to a user without a name and groups; the error of an invalid policy names its line.
pub(crate) fn policies(data: &[u8]) {
    let policies = match AbacAuthorizer::parse(Path::new("file"), data) {
        Ok(policies) => policies,
        Err(error) => {
            return assert!(
                error.to_string().starts_with("error reading policy file file, line "),
                "{error}"
            );
        }
    };
    let nobody = UserInfo::default();
    for attributes in [
        Attributes { resource: "pods", namespace: "shop", ..Attributes::of(&nobody, "get") },
        Attributes { path: "/metrics", is_resource_request: false, ..Attributes::of(&nobody, "get") },
    ] {
        let verdict = pin!(policies.authorize(&attributes)).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(verdict, Poll::Ready(verdict) if !verdict.is_allowed()));
    }
}
