//! The parts that controllers are made of.
//!
//! ```text
//!   watch cache ──► Informer ──► WorkQueue ──► Reconciler ──► writes
//!                   (deltas)      (names)   ◄──
//!                                        retries with back-off
//! ```
//!
//! An [`Informer`] follows a watch cache and reports its changes. Code that derives its own state from objects (the index
//! of roles, the definitions of custom resources) applies the changes directly. A controller that writes objects adds
//! the names of changed objects to a [`WorkQueue`], and a [`Reconciler`] processes them.
//!
//! The crate does not know registries or requests, so that authorizers can follow caches, too.

mod informer;
mod list_watch;
mod queue_observer;
mod rate_limiter;
mod reconciler;
mod work_queue;
mod work_queue_metrics;

pub use informer::{Informer, keep_watching};
pub use list_watch::{Delta, Deltas, ListWatch, Names};
pub use reconciler::Reconciler;
pub use work_queue::WorkQueue;
pub use work_queue_metrics::WorkQueueMetrics;
