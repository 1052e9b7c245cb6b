//! The data that expressions of a request read.

use pintle_cel::{Activation, Authority, Authorization, ResourceCheck, Value as CelValue};
use pintle_machinery::Value;
use std::sync::Arc;

/// The data that expressions of a request read. Absent data are null.
#[derive(Clone, Default)]
pub struct Input<'p> {
    /// `object`; absent on deletion.
    pub object: Option<&'p Value>,
    /// `oldObject`; absent on creation.
    pub old_object: Option<&'p Value>,
    /// `request`, as [`RequestAttributes`](crate::RequestAttributes) creates it.
    pub request: Option<&'p Value>,
    /// `request` in match conditions, where it differs: its `resource` is that of the request, and not the one that the
    /// rules match.
    pub condition_request: Option<&'p Value>,
    /// `params`
    pub params: Option<&'p Value>,
    /// `namespaceObject`; absent for requests for cluster-scoped objects and for namespaces.
    pub namespace: Option<&'p Value>,
    /// `authorizer`, and the check that `authorizer.requestResource` is.
    pub authorizer: Option<(Arc<dyn Authority>, ResourceCheck)>,
}

impl<'p> Input<'p> {
    pub(crate) fn activation(&self) -> Activation<'p> {
        let of = |value: Option<&'p Value>| value.map_or(CelValue::Null, CelValue::from_json);
        let mut activation = Activation::new()
            .with("object", of(self.object))
            .with("oldObject", of(self.old_object))
            .with("request", of(self.request))
            .with("params", of(self.params))
            .with("namespaceObject", of(self.namespace));
        if let Some((authority, resource)) = &self.authorizer {
            let request_resource = Authorization::request_resource(authority.clone(), resource.clone());
            activation = activation
                .with("authorizer", Authorization::authorizer(authority.clone()).into())
                .with("authorizer.requestResource", request_resource.into());
        }
        activation
    }
}
