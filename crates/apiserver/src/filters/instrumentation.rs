//! Counts and times requests.

use super::filter::{Filter, Rest};
use crate::{
    base::{
        request::{Request, info_of, query_of},
        response::{Response, Served},
    },
    metrics::Metrics,
};
use prometheus::IntGauge;
use std::{sync::Arc, time::Instant};

pub(super) struct Instrumentation {
    pub(super) metrics: Arc<Metrics>,
}

/// Counts a request as in flight until it is dropped, however the request ends.
struct InFlight(IntGauge);

impl InFlight {
    fn new(gauge: IntGauge) -> InFlight {
        gauge.inc();
        InFlight(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Filter for Instrumentation {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let started = Instant::now();
        let info = info_of(&request);
        let dry_run = query_of(&request).first("dryRun").is_some();
        let in_flight = (!info.is_long_running()).then(|| InFlight::new(self.metrics.in_flight(&info)));
        let mut response = next.call(request).await;
        drop(in_flight);
        let is_served = response.extensions().get::<Served>().is_some();
        if is_served && info.is_long_running() {
            let running = InFlight::new(self.metrics.long_running(&info));
            response = response.map(|body| body.with_guard(running));
        }
        let took = started.elapsed();
        let code = response.status().as_u16();
        self.metrics.observe(&info, is_served, dry_run, code, took);
        tracing::debug!(
            verb = info.verb,
            group = info.api_group,
            resource = info.resource,
            namespace = info.namespace,
            name = info.name,
            subresource = info.subresource,
            code,
            microseconds = took.as_micros() as u64,
            "HTTP"
        );
        response
    }
}
