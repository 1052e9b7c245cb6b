//! The metrics of a request's route.

use crate::metrics::RouteSeries;
use std::sync::{Arc, OnceLock};

/// A place for the metrics of a request's route, which its handler sets when it has found that the route exists; a request
/// extension. Other names in a path are the client's invention and must not be kept, such as in metrics.
#[derive(Clone, Default)]
pub(crate) struct RouteSlot(Arc<OnceLock<Arc<RouteSeries>>>);

impl RouteSlot {
    /// Sets the metrics.
    pub(crate) fn found(&self, series: Arc<RouteSeries>) {
        self.0.get_or_init(|| series);
    }

    /// The metrics; `None` if no route was found yet.
    pub(crate) fn series(&self) -> Option<&Arc<RouteSeries>> {
        self.0.get()
    }
}
