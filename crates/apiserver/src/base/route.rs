//! The route of a request.

use crate::metrics::RouteSeries;
use std::sync::{Arc, OnceLock};

/// The metrics of a request's route, as soon as its handler has found that it exists; a request extension. Other names in
/// a path are the client's invention and must not be kept, such as in metrics.
#[derive(Clone, Default)]
pub(crate) struct Route(Arc<OnceLock<Arc<RouteSeries>>>);

impl Route {
    /// Sets the metrics.
    pub(crate) fn found(&self, series: Arc<RouteSeries>) {
        self.0.get_or_init(|| series);
    }

    /// The metrics; `None` if no route was found yet.
    pub(crate) fn series(&self) -> Option<&Arc<RouteSeries>> {
        self.0.get()
    }
}
