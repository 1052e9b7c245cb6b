//! Defines [`RequestContext`], the view that strategies, subresources and admission have of a request.

use crate::{Client, EmptyFields, Registry};
use jiff::Timestamp;
use pintle_auth::authz::Authorizer;
use pintle_machinery::{GroupVersion, Status, UserInfo};

/// One request, as strategies, subresources and admission see it.
pub struct RequestContext<'a> {
    /// The authenticated user.
    pub user: &'a UserInfo,
    /// The verb of the request, as authorization sees it: `update` for a PUT, `patch` for a PATCH.
    pub verb: &'a str,
    /// The namespace of the request; "" for cluster-scoped resources.
    pub namespace: &'a str,
    /// The name in the path; "" on create.
    pub name: &'a str,
    /// The subresource in the path, or "".
    pub subresource: &'a str,
    /// The group and version the client speaks.
    pub group_version: &'a GroupVersion,
    /// The time of the request. All timestamps that the request writes are taken from it.
    pub now: Timestamp,
    /// Runs all checks and stores nothing.
    pub dry_run: bool,
    /// The fields that the body gives as empty lists and maps.
    pub empty_fields: &'a EmptyFields,
    /// The other objects of this server.
    pub registry: &'a dyn Registry,
    /// Authorizes further actions of the user, such as the use of a referenced object.
    pub authorizer: &'a dyn Authorizer,
    /// The client that awaits the response.
    pub client: &'a dyn Client,
}

impl RequestContext<'_> {
    /// Fails a request whose client is gone, before it writes anything.
    ///
    /// # Errors
    /// 504, as kube-apiserver notes for such requests. The client does not see it.
    pub fn check_client(&self) -> Result<(), Status> {
        match self.client.is_gone() {
            true => Err(Status::canceled()),
            false => Ok(()),
        }
    }
}
