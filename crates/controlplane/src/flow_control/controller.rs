//! Applies flow schemas and priority levels to this server, and reports dangling schemas in their status.

use super::{flow_schemas, priority_levels};
use futures_util::future::try_join_all;
use jiff::Timestamp;
use pintle_flowcontrol::{FlowControl, StatusUpdate};
use pintle_machinery::{GroupResource, Status, StatusReason, Value, json, meta::format_time};
use pintle_registry::{Registry, WriteOptions};
use std::{collections::HashMap, collections::VecDeque, sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// The field manager of these writes.
const FIELD_MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The maximum number of status writes per schema and minute: servers that disagree would write without end.
const WRITES_A_MINUTE: usize = 6;
const MINUTE: Duration = Duration::from_secs(60);
/// The back-off after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// The delay of a status write that exceeds the maximum.
const POSTPONED: Duration = Duration::from_secs(45);

/// Watches the flow schemas and priority levels of a registry.
pub struct FlowControlController {
    registry: Arc<dyn Registry>,
    flow_control: Arc<FlowControl>,
    changes: watch::Receiver<u64>,
    /// The times of the status writes in the last minute, by schema.
    written: HashMap<String, VecDeque<Instant>>,
}

impl FlowControlController {
    /// Creates a controller that configures `flow_control` whenever `changes` increases.
    pub fn new(
        registry: Arc<dyn Registry>,
        flow_control: Arc<FlowControl>,
        changes: watch::Receiver<u64>,
    ) -> FlowControlController {
        FlowControlController { registry, flow_control, changes, written: HashMap::new() }
    }

    /// Applies the current objects. Does not write statuses.
    ///
    /// # Errors
    /// When the objects cannot be read.
    pub async fn configure(&self) -> Result<(), Status> {
        self.read().await.map(drop)
    }

    /// Runs until `shutdown` completes.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = self.follow() => {}
            () = shutdown => {}
        }
    }

    async fn follow(&mut self) {
        loop {
            self.changes.borrow_and_update();
            let again = match self.sync().await {
                Ok(false) => None,
                Ok(true) => Some(POSTPONED),
                Err(status) => {
                    tracing::warn!(%status.message, "flow control could not be configured; it is tried again");
                    Some(RETRY)
                }
            };
            let pause = async {
                match again {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = pause => {}
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Updates flow control and statuses; returns whether a status write is postponed.
    async fn sync(&mut self) -> Result<bool, Status> {
        let mut is_postponed = false;
        let mut due = Vec::new();
        for update in self.read().await? {
            match self.may_write(&update.schema) {
                true => due.push(update),
                false => is_postponed = true,
            }
        }
        // Concurrent, so that the writes share a group commit.
        try_join_all(due.iter().map(|update| self.write(update))).await?;
        Ok(is_postponed)
    }

    async fn read(&self) -> Result<Vec<StatusUpdate>, Status> {
        let (levels, schemas) = tokio::try_join!(self.list(priority_levels()), self.list(flow_schemas()))?;
        Ok(self.flow_control.configure(levels, schemas))
    }

    async fn list(&self, resource: GroupResource) -> Result<Vec<Value>, Status> {
        match self.registry.list(&resource, "").await {
            // A disabled resource has no objects; the mandatory objects are in force.
            Err(status) if status == Status::no_such_resource() => Ok(Vec::new()),
            result => result,
        }
    }

    fn may_write(&mut self, schema: &str) -> bool {
        let now = Instant::now();
        self.written.retain(|_, times| {
            while times.front().is_some_and(|then| now.duration_since(*then) > MINUTE) {
                times.pop_front();
            }
            !times.is_empty()
        });
        let times = self.written.entry(schema.to_owned()).or_default();
        let may = times.len() < WRITES_A_MINUTE;
        if may {
            times.push_back(now);
        }
        may
    }

    async fn write(&self, update: &StatusUpdate) -> Result<(), Status> {
        let condition = json!({
            "type": "Dangling",
            "status": update.condition.status,
            "lastTransitionTime": format_time(Timestamp::now()),
            "reason": update.condition.reason,
            "message": update.condition.message,
        });
        let (resource, name) = (flow_schemas(), update.schema.as_str());
        let configuration = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        });
        let options = WriteOptions {
            field_manager: FIELD_MANAGER.to_owned(),
            subresource: "status",
            ..WriteOptions::default()
        };
        match self.registry.apply(&resource, "", name, configuration, options).await {
            // The schema was deleted.
            Err(status) if status.reason == StatusReason::NotFound => Ok(()),
            result => result.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FlowControlObjects;
    use super::*;
    use crate::Controller;
    use pintle_flowcontrol::{
        FlowControlConfig, FlowControlMetrics, RealClock, ResourceStats, ResourceStatsSource,
    };
    use pintle_machinery::ValueExt;
    use pintle_registry::testing::{MemoryRegistry, now};

    struct NoStats;

    impl ResourceStatsSource for NoStats {
        fn stats(&self, _: &str, _: &str) -> Option<ResourceStats> {
            None
        }
    }

    fn controller(registry: &Arc<MemoryRegistry>) -> FlowControlController {
        let clock = Arc::new(RealClock::default());
        let metrics = Arc::new(FlowControlMetrics::new(clock.clone()).unwrap());
        let flow_control = FlowControl::new(FlowControlConfig {
            clock,
            server_concurrency_limit: 600,
            stats: Arc::new(NoStats),
            metrics,
        });
        FlowControlController::new(registry.clone(), flow_control, watch::channel(0).1)
    }

    fn conditions(registry: &MemoryRegistry, name: &str) -> Vec<(String, String)> {
        let object = registry.stored(&flow_schemas(), "", name).unwrap();
        let conditions = object.items_at("status.conditions").iter();
        conditions
            .map(|condition| (condition.str_at("type").to_owned(), condition.str_at("status").to_owned()))
            .collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(one, two)| ((*one).to_owned(), (*two).to_owned())).collect()
    }

    #[test]
    fn statuses_tell_whether_the_level_is_there() {
        let registry = Arc::new(MemoryRegistry::default());
        now(FlowControlObjects.reconcile(&*registry)).unwrap();
        let lost = json!({
            "metadata": {"name": "lost"},
            "spec": {"priorityLevelConfiguration": {"name": "nowhere"}},
            "status": {"conditions": [{"type": "Mine", "status": "Unknown"}]},
        });
        now(registry.create(&flow_schemas(), "", lost, WriteOptions::default())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut controller = controller(&registry);
        assert_eq!(runtime.block_on(controller.sync()), Ok(false));
        assert_eq!(conditions(&registry, "probes"), pairs(&[("Dangling", "False")]));
        assert_eq!(conditions(&registry, "lost"), pairs(&[("Mine", "Unknown"), ("Dangling", "True")]));
        let revision = registry.revision();
        assert_eq!(runtime.block_on(controller.sync()), Ok(false));
        assert_eq!(registry.revision(), revision);
    }

    #[test]
    fn a_fight_over_a_status_is_left_alone_for_a_while() {
        let registry = Arc::new(MemoryRegistry::default());
        now(FlowControlObjects.reconcile(&*registry)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut controller = controller(&registry);
        for turn in 0..10 {
            let undo = |mut object: Value| {
                object.set("status", json!({}));
                Ok(object)
            };
            now(registry.update(&flow_schemas(), "", "probes", Box::new(undo), WriteOptions::default()))
                .unwrap();
            assert_eq!(runtime.block_on(controller.sync()), Ok(turn >= WRITES_A_MINUTE));
        }
        assert!(conditions(&registry, "probes").is_empty());
        assert_eq!(conditions(&registry, "exempt").len(), 1);
    }
}
