//! Connects for tests.

use pintle_auth::authz::AlwaysAllow;
use pintle_machinery::{GroupResource, GroupVersion, UserInfo, Value, ValueExt};
use pintle_registry::{Connecter, Registry, RequestContext, WriteOptions, testing::MemoryRegistry};

/// Connects to an object of the namespace `ns` with these options, where these objects exist. Returns the transport and
/// the URL, unescaped, or the code and the message of the `Status`.
pub(super) async fn connect(
    connecter: &dyn Connecter,
    objects: &[(&str, Value)],
    name: &str,
    options: Value,
) -> String {
    let registry = MemoryRegistry::default();
    for (resource, object) in objects {
        let resource = GroupResource::new("", *resource);
        let namespace = object.str_at("metadata.namespace");
        registry.create(&resource, namespace, object.clone(), WriteOptions::default()).await.unwrap();
    }
    let context = RequestContext {
        user: &UserInfo::default(),
        verb: "get",
        namespace: "ns",
        name,
        subresource: "proxy",
        group_version: &GroupVersion::new("", "v1"),
        now: jiff::Timestamp::UNIX_EPOCH,
        dry_run: false,
        empty_fields: &pintle_registry::EmptyFields::default(),
        registry: &registry,
        authorizer: &AlwaysAllow,
        client: &pintle_registry::PatientClient,
    };
    match connecter.connect(&context, &options).await {
        Err(status) => format!("{} {}", status.code, status.message),
        Ok(None) => "nothing".to_owned(),
        Ok(Some(destination)) => {
            let location = &destination.location;
            let query = location.query.iter().map(|(name, value)| format!("{name}={value}"));
            let query = query.collect::<Vec<_>>().join("&");
            let mark = if query.is_empty() { "" } else { "?" };
            let (transport, authority) = (destination.transport, location.authority());
            format!("{transport:?} {}://{authority}{}{mark}{query}", location.scheme, location.path)
        }
    }
}
