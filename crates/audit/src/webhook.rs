//! The webhook backend: lists of events, posted to a server that a kubeconfig file names.

use crate::encode::event_list;
use bytes::Bytes;
use pintle_webhook::{Backoff, ConfigError, Kubeconfig, KubeconfigError, WebhookClient};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// How long one attempt may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a webhook cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The file cannot be used.
    #[error("initializing audit webhook: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// What it says cannot be used.
    #[error("initializing audit webhook: kubeconfig file {}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: ConfigError,
    },
}

/// A server that takes events.
pub struct Webhook {
    client: WebhookClient,
    backoff: Backoff,
}

impl Webhook {
    /// The server that a kubeconfig file names. After a failed attempt others follow, the first of them after
    /// `initial_backoff`.
    ///
    /// # Errors
    /// When the file cannot be read, or says what cannot be used.
    pub fn new(kubeconfig: &Path, initial_backoff: Duration) -> Result<Webhook, WebhookError> {
        let config = Kubeconfig::read(kubeconfig)?;
        let client = WebhookClient::of_kubeconfig(&config)
            .map_err(|source| WebhookError::Config { path: kubeconfig.to_owned(), source })?;
        Ok(Webhook { client, backoff: Backoff { initial: initial_backoff, ..Backoff::default() } })
    }

    /// Posts events, again and again if need be: whatever goes wrong, events are worth another attempt.
    pub(crate) async fn send(&self, events: &[Bytes]) -> Result<(), String> {
        let list = event_list(events);
        let mut waits = self.backoff.waits();
        loop {
            let error = match self.client.post(list.clone(), TIMEOUT).await {
                // What a server says when it took them is its own affair.
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
                Ok(answer) => answer.object().err().unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            match waits.next() {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }
}
