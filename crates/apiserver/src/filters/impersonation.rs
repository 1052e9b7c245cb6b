//! Lets a user act as another, if they may
//! (<https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>).

use super::{Filter, Next, audit, authorization::user_of};
use crate::{
    request::Request,
    response::{Response, json_failure},
};
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use pintle_auth::authz::{Attributes, Authorizer};
use pintle_machinery::{
    GroupResource, Status, UserInfo,
    user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED},
};
use std::{collections::BTreeMap, sync::Arc};

pub(super) struct Impersonation {
    pub(super) authorizer: Arc<dyn Authorizer>,
}

const EXTRA_PREFIX: &str = "impersonate-extra-";

impl Filter for Impersonation {
    async fn handle(self: Arc<Self>, mut request: Request, next: impl Next) -> Response {
        let wanted = match wanted_user(request.headers()) {
            Ok(None) => return next.call(request).await,
            Ok(Some(wanted)) => wanted,
            Err(status) => return json_failure(&status),
        };
        let user = user_of(&request);
        let mut asked = vec![("users", wanted.name.as_str(), "")];
        for group in &wanted.groups {
            asked.push(("groups", group, ""));
        }
        if !wanted.uid.is_empty() {
            asked.push(("uids", &wanted.uid, ""));
        }
        for (key, values) in &wanted.extra {
            asked.extend(values.iter().map(|value| ("userextras", value.as_str(), key.as_str())));
        }
        for (resource, name, subresource) in asked {
            let attributes = Attributes {
                version: "v1",
                resource,
                subresource,
                name,
                ..Attributes::of(&user, "impersonate")
            };
            if !self.authorizer.authorize(&attributes).await.is_allowed() {
                let why = format!(
                    "User \"{}\" cannot impersonate resource \"{resource}\" in API group \"\" at the cluster scope",
                    user.name
                );
                let resource = GroupResource::new("", resource);
                return json_failure(&Status::forbidden(&resource, name, &why));
            }
        }
        let headers = request.headers_mut();
        let names: Vec<_> =
            headers.keys().filter(|name| name.as_str().starts_with("impersonate-")).cloned().collect();
        for name in names {
            headers.remove(name);
        }
        let user = Arc::new(with_implied_group(wanted));
        audit::note_impersonation(&request, &user, "");
        request.extensions_mut().insert(user);
        next.call(request).await
    }
}

/// Who the headers ask for.
fn wanted_user(headers: &HeaderMap) -> Result<Option<UserInfo>, Status> {
    let one =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let name = one("impersonate-user");
    let uid = one("impersonate-uid");
    let groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, value) in headers {
        if let (Some(key), Ok(value)) = (header.as_str().strip_prefix(EXTRA_PREFIX), value.to_str()) {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            extra.entry(key).or_default().push(value.to_owned());
        }
    }
    if name.is_empty() {
        if groups.is_empty() && extra.is_empty() && uid.is_empty() {
            return Ok(None);
        }
        return Err(Status::bad_request(format!(
            "requested [{}] without impersonating a user",
            groups.join(" ")
        )));
    }
    Ok(Some(UserInfo { name, uid, groups, extra }))
}

/// Everybody is authenticated or not, also when the headers do not say so.
fn with_implied_group(mut user: UserInfo) -> UserInfo {
    if let (true, Some((namespace, _))) = (
        user.groups.is_empty(),
        user.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')),
    ) {
        user.groups.push("system:serviceaccounts".to_owned());
        user.groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let known = user.is_member_of(AUTHENTICATED) || user.is_member_of(UNAUTHENTICATED);
    if !known {
        let group = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        user.groups.push(group.to_owned());
    }
    user
}
