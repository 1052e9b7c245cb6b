//! The refusal of a request that the authorizer does not allow.

use super::{Attributes, Verdict};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status};
use std::borrow::Cow;

impl Attributes<'_> {
    /// The 403 of a denied request, with the authorizers' reasons if there are any.
    pub fn forbidden(&self, reason: &str) -> Status {
        let (user, verb) = (quote(&self.user.name), self.verb);
        if !self.is_resource_request {
            let why = format!("User {user} cannot {verb} path {}", quote(self.path));
            return Status::forbidden(&GroupResource::default(), self.name, &with_reason(&why, reason));
        }
        let resource = match self.subresource {
            "" => quote(self.resource),
            subresource => quote(&format!("{}/{subresource}", self.resource)),
        };
        let place = match self.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", quote(namespace)),
        };
        let group = quote(self.group);
        let why = format!("User {user} cannot {verb} resource {resource} in API group {group} {place}");
        let resource = GroupResource::new(self.group, self.resource);
        Status::forbidden(&resource, self.name, &with_reason(&why, reason))
    }
}

impl Verdict {
    /// The error and the reason, as one text.
    pub fn explanation(&self) -> String {
        match (&*self.error, &*self.reason) {
            ("", reason) => reason.to_owned(),
            (error, "") => error.to_owned(),
            (error, reason) => format!("{error}: {reason}"),
        }
    }
}

fn with_reason(why: &str, reason: &str) -> String {
    let why = without_markup(why);
    match reason {
        "" => why.into_owned(),
        reason => format!("{why}: {reason}"),
    }
}

/// Escapes HTML markup in a text of the client.
pub fn without_markup(text: &str) -> Cow<'_, str> {
    match text.contains(['&', '<', '>']) {
        true => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::UserInfo;

    #[test]
    fn refusals_have_the_messages_of_kubernetes() {
        let user = UserInfo { name: "we\"i<rd".to_owned(), ..UserInfo::default() };
        let resource = Attributes { group: "apps", resource: "deployments", ..Attributes::of(&user, "get") };
        let check = |attributes: Attributes<'_>, reason: &str, message: &str| {
            assert_eq!(attributes.forbidden(reason).message, message);
        };
        check(
            Attributes { namespace: "shop", name: "web", subresource: "scale", ..resource },
            "",
            "deployments.apps \"web\" is forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"deployments/scale\" in API group \
             \"apps\" in the namespace \"shop\"",
        );
        check(
            resource,
            "RBAC: a <b>",
            "deployments.apps is forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"deployments\" in API group \"apps\" at \
             the cluster scope: RBAC: a <b>",
        );
        check(
            Attributes { path: "/metrics", is_resource_request: false, ..Attributes::of(&user, "get") },
            "",
            "forbidden: User \"we\\\"i&lt;rd\" cannot get path \"/metrics\"",
        );
        // Of a path such as `/apis/apps/v1//x`.
        let nothing = Attributes { resource: "", name: "x", ..resource };
        check(
            nothing,
            "",
            ".apps \"x\" is forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"\" in API group \"apps\" at the cluster scope",
        );
        check(
            Attributes { subresource: "y", namespace: "n", ..nothing },
            "",
            ".apps \"x\" is forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"/y\" in API group \"apps\" in the \
             namespace \"n\"",
        );
        check(
            Attributes { group: "", ..nothing },
            "",
            "forbidden: User \"we\\\"i&lt;rd\" cannot get resource \"\" in API group \"\" at the cluster scope",
        );
    }
}
