//! Measures the cost of flow control for a request that is admitted at once: one of an administrator, and one of a
//! user that the last schema but one matches, and that passes through a queue.

use criterion::{Criterion, criterion_group, criterion_main};
use pintle_flowcontrol::{
    FlowControl, FlowControlConfig, FlowControlMetrics, RealClock, RequestAttributes, ResourceStats,
    ResourceStatsSource,
    bootstrap::{Requirement, flow_schemas, priority_levels},
};
use pintle_machinery::UserInfo;
use std::{hint::black_box, sync::Arc, time::Duration};

struct Nothing;

impl ResourceStatsSource for Nothing {
    fn stats(&self, _: &str, _: &str) -> Option<ResourceStats> {
        None
    }
}

struct Get(UserInfo);

impl RequestAttributes for Get {
    fn user(&self) -> &UserInfo {
        &self.0
    }

    fn verb(&self) -> &str {
        "get"
    }

    fn path(&self) -> &str {
        "/api/v1/namespaces/default/pods/a"
    }

    fn is_resource_request(&self) -> bool {
        true
    }

    fn api_group(&self) -> &str {
        ""
    }

    fn api_version(&self) -> &str {
        "v1"
    }

    fn resource(&self) -> &str {
        "pods"
    }

    fn subresource(&self) -> &str {
        ""
    }

    fn namespace(&self) -> &str {
        "default"
    }

    fn name(&self) -> &str {
        "a"
    }

    fn query(&self, _: &str) -> Option<&str> {
        None
    }
}

fn uncontended(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let Ok(runtime) = runtime else { return };
    let clock = Arc::new(RealClock::default());
    let Ok(metrics) = FlowControlMetrics::new(clock.clone()) else { return };
    let control = FlowControl::new(FlowControlConfig {
        clock,
        server_concurrency_limit: 600,
        stats: Arc::new(Nothing),
        metrics: Arc::new(metrics),
    });
    let both = |objects: fn(Requirement) -> Vec<_>| {
        [objects(Requirement::Mandatory), objects(Requirement::Suggested)].concat()
    };
    control.configure(both(priority_levels), both(flow_schemas));
    for (name, user, group) in [("exempt", "admin", "system:masters"), ("queued", "jane", "devs")] {
        let groups = vec![group.to_owned(), "system:authenticated".to_owned()];
        let user = UserInfo { name: user.to_owned(), groups, ..UserInfo::default() };
        let request: Arc<dyn RequestAttributes> = Arc::new(Get(user));
        criterion.bench_function(&format!("uncontended/{name}"), |bencher| {
            bencher.iter(|| {
                let admit = control.admit(request.clone(), Duration::from_secs(15));
                black_box(runtime.block_on(admit).seat.is_ok())
            });
        });
    }
}

criterion_group!(benches, uncontended);
criterion_main!(benches);
