//! The resource of a request, and the resources that are equivalent to it.

use pintle_admission::Endpoint;
use std::{fmt, sync::OnceLock};

/// The endpoint of one request, and its equivalents: the endpoints that serve the same objects in another group or
/// version. Those are only looked up when a rule needs them, and then once.
pub struct Targets<'a> {
    requested: &'a Endpoint,
    find_equivalents: &'a (dyn Fn() -> Vec<Endpoint> + Sync),
    equivalents: OnceLock<Vec<Endpoint>>,
}

impl fmt::Debug for Targets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Targets").field("requested", self.requested).finish_non_exhaustive()
    }
}

impl<'a> Targets<'a> {
    /// The targets of a request. The function returns the equivalents, with or without the requested endpoint.
    pub fn new(
        requested: &'a Endpoint,
        find_equivalents: &'a (dyn Fn() -> Vec<Endpoint> + Sync),
    ) -> Targets<'a> {
        Targets { requested, find_equivalents, equivalents: OnceLock::new() }
    }

    /// The endpoint of the request.
    pub fn requested(&self) -> &Endpoint {
        self.requested
    }

    /// The equivalents, without the requested endpoint, in the order of preference.
    pub fn equivalents(&self) -> impl Iterator<Item = &Endpoint> {
        let all = self.equivalents.get_or_init(|| (self.find_equivalents)());
        all.iter().filter(|endpoint| endpoint.resource != self.requested.resource)
    }
}
