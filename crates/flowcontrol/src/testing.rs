//! Requests for tests.

use crate::RequestAttributes;
use pintle_machinery::UserInfo;
use std::collections::BTreeMap;

/// A request with the attributes that a test sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestRequest {
    user: UserInfo,
    verb: String,
    path: String,
    is_resource_request: bool,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    query: BTreeMap<String, String>,
}

impl TestRequest {
    pub(crate) fn path(verb: &str, path: &str) -> TestRequest {
        TestRequest { verb: verb.to_owned(), path: path.to_owned(), ..TestRequest::default() }
    }

    pub(crate) fn resource(verb: &str, group: &str, resource: &str) -> TestRequest {
        TestRequest {
            group: group.to_owned(),
            resource: resource.to_owned(),
            is_resource_request: true,
            ..TestRequest::path(verb, "/apis")
        }
    }

    pub(crate) fn by(mut self, user: &str, groups: &[&str]) -> TestRequest {
        user.clone_into(&mut self.user.name);
        self.user.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self
    }

    pub(crate) fn within(mut self, namespace: &str) -> TestRequest {
        namespace.clone_into(&mut self.namespace);
        self
    }

    pub(crate) fn named(mut self, name: &str) -> TestRequest {
        name.clone_into(&mut self.name);
        self
    }

    pub(crate) fn on(mut self, subresource: &str) -> TestRequest {
        subresource.clone_into(&mut self.subresource);
        self
    }

    pub(crate) fn asking(mut self, query: &[(&str, &str)]) -> TestRequest {
        self.query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self
    }
}

impl RequestAttributes for TestRequest {
    fn user(&self) -> &UserInfo {
        &self.user
    }

    fn verb(&self) -> &str {
        &self.verb
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn is_resource_request(&self) -> bool {
        self.is_resource_request
    }

    fn api_group(&self) -> &str {
        &self.group
    }

    fn api_version(&self) -> &str {
        "v1"
    }

    fn resource(&self) -> &str {
        &self.resource
    }

    fn subresource(&self) -> &str {
        &self.subresource
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn query(&self, parameter: &str) -> Option<&str> {
        self.query.get(parameter).map(String::as_str)
    }
}
