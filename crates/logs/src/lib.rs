//! The server's log: verbosity, and lines in klog's text and JSON formats
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-logs/>).
//!
//! Events of `tracing` are log entries. The level of an event is its severity: errors and warnings have a severity of
//! their own, and all other events are informational, with a [`Verbosity`] that follows from the level. Events of the
//! target [`HTTP`] are the lines of requests.
//!
//! A thread writes the lines ([`LogWriter`]), so that a slow reader of the log delays no other thread.

mod entry;
mod json;
mod layer;
mod text;
mod verbosity;
mod writer;

pub use layer::{LogFormat, LogLayer, Streams};
pub use verbosity::{HTTP, InvalidVmodule, Levels, SPANS, Verbosity, Vmodule};
pub use writer::{Buffer, Flush, LogWriter};
