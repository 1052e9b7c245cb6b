//! The active configuration: made from the objects and the previous levels.

use crate::{
    bootstrap::{self, Requirement},
    borrowing::{self, Demand, Limits, Participant},
    counted_schema::CountedSchema,
    flow_schema::{DanglingCondition, FlowSchema},
    level::{Flow, PriorityLevel},
    metrics::{Adjustment, FlowControlMetrics, FlowMetrics, LevelMetrics},
    priority_level::{CATCH_ALL, EXEMPT, LimitResponse, PriorityLevelConfiguration},
    request::RequestAttributes,
};
use pintle_machinery::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The part of a level's seats that a single request may have.
const MAX_SEATS_PART: f64 = 0.15;

/// The schemas that classify requests. A new configuration replaces it as a whole.
pub(crate) struct Classification {
    /// In the order of matching.
    flows: Vec<Arc<Flow>>,
    catch_all: Arc<Flow>,
}

impl Classification {
    /// The first flow whose schema matches.
    pub(crate) fn classify(&self, request: &dyn RequestAttributes) -> &Arc<Flow> {
        let first = self.flows.iter().find(|flow| flow.schema.schema.matches(request));
        // Every user is authenticated or not, so the last schema matches every request.
        first.unwrap_or(&self.catch_all)
    }
}

/// A status update that a flow schema needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The name of the schema.
    pub schema: String,
    /// The condition that its status must have.
    pub condition: DanglingCondition,
}

/// The priority levels, and their seats.
pub(crate) struct Levels {
    levels: BTreeMap<String, LevelState>,
    nominal_sum: u64,
    server_limit: u64,
    metrics: Arc<FlowControlMetrics>,
}

struct LevelState {
    configuration: PriorityLevelConfiguration,
    level: Arc<PriorityLevel>,
    metrics: LevelMetrics,
    demand: Demand,
    limits: Limits,
    current: u64,
}

impl Levels {
    pub(crate) fn new(server_limit: u64, metrics: Arc<FlowControlMetrics>) -> Levels {
        Levels { levels: BTreeMap::new(), nominal_sum: 0, server_limit, metrics }
    }

    /// Applies the objects. Invalid levels are ignored; for missing mandatory objects the server's own are used.
    pub(crate) fn configure(
        &mut self,
        now: Duration,
        levels: &[Value],
        schemas: &[Value],
    ) -> (Classification, Vec<StatusUpdate>) {
        let mut wanted: BTreeMap<String, PriorityLevelConfiguration> = BTreeMap::new();
        for object in levels {
            match PriorityLevelConfiguration::read(object) {
                Ok(level) => drop(wanted.insert(level.name.clone(), level)),
                Err(error) => {
                    let name = pintle_machinery::meta::ObjectMeta::name(object);
                    tracing::warn!(name, %error, "a priority level is broken and is not used");
                }
            }
        }
        let schemas: Vec<FlowSchema> = schemas.iter().map(FlowSchema::read).collect();
        let updates = schemas.iter().filter_map(|schema| {
            let condition =
                DanglingCondition::new(&schema.priority_level, wanted.contains_key(&schema.priority_level));
            (schema.dangling.as_ref() != Some(&condition))
                .then(|| StatusUpdate { schema: schema.name.clone(), condition })
        });
        let updates = updates.collect();
        let mut schemas: Vec<FlowSchema> =
            schemas.into_iter().filter(|schema| wanted.contains_key(&schema.priority_level)).collect();
        schemas.sort_by(|one, other| one.order().cmp(&other.order()));
        for object in bootstrap::flow_schemas(Requirement::Mandatory) {
            let schema = FlowSchema::read(&object);
            if schemas.iter().any(|own| own.name == schema.name) {
                continue;
            }
            match schema.name.as_str() {
                EXEMPT => schemas.insert(0, schema),
                _ => schemas.push(schema),
            }
        }
        for object in bootstrap::priority_levels(Requirement::Mandatory) {
            if let Ok(level) = PriorityLevelConfiguration::read(&object) {
                wanted.entry(level.name.clone()).or_insert(level);
            }
        }
        self.replace_levels(now, wanted);
        self.set_limits(now);
        self.adjust(now);
        let flows: Vec<Arc<Flow>> = schemas.into_iter().filter_map(|schema| self.flow(schema)).collect();
        let catch_all = flows.iter().find(|flow| flow.schema.schema.name == CATCH_ALL);
        let catch_all = catch_all.or(flows.last()).cloned();
        let catch_all = catch_all.unwrap_or_else(|| self.last_resort(now));
        (Classification { flows, catch_all }, updates)
    }

    /// Adjusts the concurrency limit of each level.
    pub(crate) fn adjust(&mut self, now: Duration) {
        for state in self.levels.values_mut() {
            let observed = state.level.queue_set.lock().reset_demand(now);
            state.demand.update(&observed);
        }
        let participants: Vec<Participant> = self
            .levels
            .values()
            .map(|state| Participant {
                is_exempt: state.configuration.is_exempt(),
                limits: state.limits,
                demand: state.demand,
                current: state.current,
            })
            .collect();
        let (adjusted, fair_fraction) = borrowing::adjust(self.nominal_sum, &participants);
        self.metrics.fair_frac.set(fair_fraction);
        for (state, adjusted) in self.levels.values_mut().zip(adjusted) {
            state.current = adjusted.limit;
            state.metrics.note_adjustment(&Adjustment {
                high_watermark: state.demand.high_watermark as f64,
                average: state.demand.average,
                deviation: state.demand.deviation,
                smoothed: state.demand.smoothed,
                target: adjusted.target,
                limit: adjusted.limit,
            });
            let denominator = match adjusted.limit {
                0 => (self.server_limit / 10).max(1),
                limit => limit,
            };
            let response = state.configuration.response;
            state.level.queue_set.lock().configure(now, response, adjusted.limit, denominator);
        }
    }

    /// All levels, including those whose objects are deleted.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<PriorityLevel>> {
        self.levels.values().map(|state| &state.level)
    }

    /// Whether a level whose object is deleted has become idle.
    pub(crate) fn has_emptied(&self) -> bool {
        self.all().any(|level| level.is_quiescing.load(Ordering::Relaxed) && level.queue_set.lock().is_idle())
    }

    fn replace_levels(&mut self, now: Duration, wanted: BTreeMap<String, PriorityLevelConfiguration>) {
        let mut old = std::mem::take(&mut self.levels);
        for (name, configuration) in wanted {
            let state = match old.remove(&name) {
                Some(state) => LevelState { configuration, ..state },
                None => LevelState {
                    level: Arc::new(PriorityLevel::new(now, &configuration, &self.metrics)),
                    metrics: LevelMetrics::new(&self.metrics, &name),
                    configuration,
                    demand: Demand::default(),
                    limits: Limits::default(),
                    current: 0,
                },
            };
            state.level.is_quiescing.store(false, Ordering::Relaxed);
            self.levels.insert(name, state);
        }
        // A deleted level with waiting or executing requests keeps seats until they are done.
        for (name, state) in old {
            if !state.level.queue_set.lock().is_idle() {
                state.level.is_quiescing.store(true, Ordering::Relaxed);
                self.levels.insert(name, state);
            }
        }
    }

    fn set_limits(&mut self, now: Duration) {
        let shares: u64 = self.levels.values().map(|state| state.configuration.shares).sum();
        let (mut nominal_sum, mut places) = (0, 0u64);
        for state in self.levels.values_mut() {
            let configuration = &state.configuration;
            let nominal = match shares {
                0 => 0.0,
                _ => (self.server_limit as f64 * configuration.shares as f64 / shares as f64).ceil(),
            };
            let limits = Limits::of(
                nominal as u64,
                configuration.lendable_percent,
                configuration.borrowing_limit_percent,
                self.server_limit,
            );
            state.metrics.set_limits(limits.nominal, limits.lower, limits.upper);
            state.limits = limits;
            nominal_sum += limits.nominal;
            if let LimitResponse::Queue(queuing) = configuration.response {
                places = places.saturating_add(
                    (queuing.queues as u64).saturating_mul(queuing.queue_length_limit as u64),
                );
                let by_part = (limits.nominal as f64 * MAX_SEATS_PART).ceil() as u64;
                let by_hand = limits.nominal / (queuing.hand_size as u64).max(1);
                state.level.set_max_seats(by_part.min(by_hand).max(1));
            }
        }
        self.nominal_sum = nominal_sum;
        // The ratios are relative to the most requests that could wait and execute.
        for kind in &self.metrics.kinds {
            kind.waiting.set_denominator(now, places as f64);
            kind.executing.set_denominator(now, nominal_sum as f64);
        }
    }

    fn flow(&self, schema: FlowSchema) -> Option<Arc<Flow>> {
        let state = self.levels.get(&schema.priority_level)?;
        let metrics = FlowMetrics::new(&self.metrics, &state.configuration.name, &schema.name);
        Some(Arc::new(Flow {
            schema: Arc::new(CountedSchema { schema, metrics }),
            level: state.level.clone(),
            level_uid: state.configuration.uid.clone(),
            response: state.configuration.response,
        }))
    }

    /// A flow without a limit, for the impossible case that even the mandatory objects are invalid.
    fn last_resort(&self, now: Duration) -> Arc<Flow> {
        let configuration = PriorityLevelConfiguration {
            name: CATCH_ALL.to_owned(),
            uid: String::new(),
            shares: 0,
            lendable_percent: 0,
            borrowing_limit_percent: None,
            response: LimitResponse::Exempt,
        };
        Arc::new(Flow {
            schema: Arc::new(CountedSchema {
                schema: FlowSchema::read(&Value::Null),
                metrics: FlowMetrics::new(&self.metrics, CATCH_ALL, CATCH_ALL),
            }),
            level: Arc::new(PriorityLevel::new(now, &configuration, &self.metrics)),
            level_uid: String::new(),
            response: LimitResponse::Exempt,
        })
    }
}
