//! API priority and fairness: executes, queues or refuses requests
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/>).
//!
//! A request is classified by the first [flow schema](FlowSchema) that matches it, which names a [priority
//! level](PriorityLevelConfiguration). Levels share the server's seats; within a level, flows share them by fair
//! queueing in virtual time, so that the requests of a flooding client only delay each other.
//!
//! The crate depends on requests and objects, but neither on HTTP nor on storage: the server passes the objects to
//! [`FlowControl::configure`], and each request to [`FlowControl::admit`]. Time comes from a [`Clock`] only.

mod allocation;
pub mod bootstrap;
mod borrowing;
mod clock;
mod configuration;
mod control;
mod counted_schema;
mod dealer;
mod dropped_requests;
mod dump;
mod flow_schema;
mod held;
mod integrator;
mod level;
mod metrics;
mod priority_level;
mod queue_set;
mod request;
mod seat_seconds;
#[cfg(test)]
mod testing;
mod timing_histogram;
mod watch_tracker;
mod work;

pub use clock::{Clock, RealClock};
pub use configuration::StatusUpdate;
pub use control::{Admission, FlowControl, FlowControlConfig, HeldSeat, Refusal, Seat};
pub use dealer::{Dealer, DealerError};
pub use flow_schema::{DanglingCondition, Distinguisher, FlowSchema};
pub use held::Held;
pub use level::Flow;
pub use metrics::FlowControlMetrics;
pub use priority_level::{
    BrokenPriorityLevel, CATCH_ALL, EXEMPT, LimitResponse, PriorityLevelConfiguration, Queuing,
};
pub use queue_set::RejectReason;
pub use request::RequestAttributes;
pub use seat_seconds::SeatSeconds;
pub use watch_tracker::{RegisteredWatch, WatchTracker};
pub use work::{ResourceStats, ResourceStatsSource, WorkEstimate, WorkEstimator};
