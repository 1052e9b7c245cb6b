//! `ServiceAccount`: an identity of pods.

mod strategy;
mod table;
mod token;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_machinery::GroupVersionKind;
use pintle_registry::{Resource, SubresourceKind};
use pintle_service_account::TokenIssuer;
use std::sync::Arc;

/// The declaration. The `token` subresource exists only with a token issuer.
pub fn resource(token_issuer: Option<&Arc<TokenIssuer>>) -> Resource {
    let resource = GROUP
        .namespaced("ServiceAccount", "serviceaccounts")
        .short_names(["sa"])
        .prints(table::columns, table::cells)
        .ruled(strategy::ServiceAccountStrategy);
    match token_issuer {
        None => resource,
        Some(issuer) => resource.subresource(
            "token",
            SubresourceKind::Create {
                kind: GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest"),
                other_versions: Vec::new(),
                creater: Arc::new(token::TokenCreater(issuer.clone())),
            },
        ),
    }
}
