//! The destinations of events.

use crate::{Log, Webhook};
use bytes::Bytes;

/// The destination of events.
pub(crate) enum Target {
    /// A file or the standard output.
    Log(Log),
    /// A server.
    Webhook(Box<Webhook>),
}

impl Target {
    /// The plugin name in metrics and log messages.
    pub(crate) fn plugin(&self) -> &'static str {
        match self {
            Target::Log(_) => "log",
            Target::Webhook(_) => "webhook",
        }
    }

    /// Sends events.
    ///
    /// # Errors
    /// The reason why they were not delivered.
    pub(crate) async fn send(&self, events: &[Bytes]) -> Result<(), String> {
        match self {
            Target::Log(log) => log.write(events.to_vec()).await.map_err(|error| error.to_string()),
            Target::Webhook(webhook) => webhook.send(events).await,
        }
    }

    /// Whether batches have to be sent one after the other, in order.
    pub(crate) fn keeps_order(&self) -> bool {
        match self {
            Target::Log(_) => true,
            Target::Webhook(_) => false,
        }
    }
}
