//! Finds out whether they may.

use super::{Filter, Next, request_info::info_of};
use crate::{
    request::Request,
    request_info::RequestInfo,
    response::{Response, json_failure},
};
use pintle_auth::authz::{Attributes, Authorizer, Decision};
use pintle_machinery::{Status, UserInfo};
use std::sync::Arc;

pub(super) struct Authorization {
    pub(super) authorizer: Arc<dyn Authorizer>,
}

impl Filter for Authorization {
    async fn handle(self: Arc<Self>, request: Request, next: impl Next) -> Response {
        let info = info_of(&request);
        let user = user_of(&request);
        let path = request.uri().path();
        let attributes = Attributes {
            user: &user,
            verb: &info.verb,
            group: &info.api_group,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
            path,
            is_resource_request: info.is_resource_request,
        };
        match self.authorizer.authorize(&attributes) {
            Decision::Allow => next.call(request).await,
            Decision::Deny => json_failure(&refusal(&user, &info, path)),
        }
    }
}

/// The user that authentication left on a request.
pub(crate) fn user_of(request: &Request) -> Arc<UserInfo> {
    request.extensions().get().cloned().unwrap_or_default()
}

fn refusal(user: &UserInfo, info: &RequestInfo, path: &str) -> Status {
    if !info.is_resource_request {
        let why = format!("User \"{}\" cannot {} path \"{path}\"", user.name, info.verb);
        return Status::forbidden(&Default::default(), "", &why);
    }
    let mut resource = info.resource.clone();
    if !info.subresource.is_empty() {
        resource = format!("{resource}/{}", info.subresource);
    }
    let place =
        match info.namespace.is_empty() || info.resource == "namespaces" && info.name == info.namespace {
            true if info.namespace.is_empty() => "at the cluster scope".to_owned(),
            _ => format!("in the namespace \"{}\"", info.namespace),
        };
    let why = format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {place}",
        user.name, info.verb, info.api_group
    );
    Status::forbidden(&info.group_resource(), &info.name, &why)
}
