//! The variable `request`.

use pintle_cel::ResourceCheck;
use pintle_machinery::{GroupVersionKind, GroupVersionResource, Map, UserInfo, Value, json};

/// The attributes of a request that expressions read as `request`.
#[derive(Clone, Copy, Debug)]
pub struct RequestAttributes<'a> {
    /// The operation: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The kind that the rules match, which `object` is converted to.
    pub kind: &'a GroupVersionKind,
    /// The resource that the rules match.
    pub resource: &'a GroupVersionResource,
    /// The kind of the request.
    pub request_kind: &'a GroupVersionKind,
    /// The resource of the request.
    pub request_resource: &'a GroupVersionResource,
    /// The subresource, or "".
    pub subresource: &'a str,
    /// The namespace, or "".
    pub namespace: &'a str,
    /// The name, or "".
    pub name: &'a str,
    /// The user.
    pub user: &'a UserInfo,
    /// Whether the request is a dry run.
    pub dry_run: bool,
    /// The options of the operation; null if it has none.
    pub options: &'a Value,
}

impl RequestAttributes<'_> {
    /// The value of `request`. Strings that are empty are missing, except those of kinds and resources.
    pub fn to_value(&self) -> Value {
        let mut request = Map::new();
        let kind = |kind: &GroupVersionKind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let resource = |resource: &GroupVersionResource| json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
        request.insert("kind", kind(self.kind));
        request.insert("resource", resource(self.resource));
        request.insert("requestKind", kind(self.request_kind));
        request.insert("requestResource", resource(self.request_resource));
        insert_text(&mut request, "subResource", self.subresource);
        insert_text(&mut request, "requestSubResource", self.subresource);
        insert_text(&mut request, "name", self.name);
        insert_text(&mut request, "namespace", self.namespace);
        request.insert("operation", self.operation.into());
        request.insert("userInfo", user(self.user));
        request.insert("dryRun", self.dry_run.into());
        request.insert("options", self.options.clone());
        Value::Object(request)
    }
}

fn user(user: &UserInfo) -> Value {
    let mut info = Map::new();
    insert_text(&mut info, "username", &user.name);
    insert_text(&mut info, "uid", &user.uid);
    if !user.groups.is_empty() {
        info.insert("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra", json!(user.extra));
    }
    Value::Object(info)
}

fn insert_text(object: &mut Map, field: &str, text: &str) {
    if !text.is_empty() {
        object.insert(field.to_owned(), text.into());
    }
}

/// The check that `authorizer.requestResource` is.
pub fn request_resource(attributes: &RequestAttributes<'_>) -> ResourceCheck {
    ResourceCheck {
        group: attributes.request_resource.group.as_str().into(),
        resource: attributes.request_resource.resource.as_str().into(),
        subresource: attributes.subresource.into(),
        namespace: attributes.namespace.into(),
        name: attributes.name.into(),
        ..ResourceCheck::default()
    }
}
