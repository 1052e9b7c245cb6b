//! The webhook backend: posts lists of events to the server of a kubeconfig file.

use crate::encode::event_list;
use bytes::Bytes;
use pintle_dialer::{ConfigError, Dialer};
use pintle_webhook::{Backoff, Kubeconfig, KubeconfigError, WebhookClient};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// The time-out of one attempt.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The error of creating a webhook backend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The kubeconfig file is unusable.
    #[error("initializing audit webhook: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// The contents of the kubeconfig file are unusable.
    #[error("initializing audit webhook: kubeconfig file {}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: ConfigError,
    },
}

/// A server that receives events.
pub struct Webhook {
    client: WebhookClient,
    backoff: Backoff,
}

impl Webhook {
    /// A client of the server in a kubeconfig file, in the network of the dialer. Failed attempts are retried with a back-off that begins at
    /// `initial_backoff`.
    ///
    /// # Errors
    /// When the file cannot be read, or its contents are unusable.
    pub fn new(
        kubeconfig: &Path,
        initial_backoff: Duration,
        dialer: &Dialer,
    ) -> Result<Webhook, WebhookError> {
        let config = Kubeconfig::read(kubeconfig)?;
        let client = WebhookClient::of_kubeconfig(&config, dialer)
            .map_err(|source| WebhookError::Config { path: kubeconfig.to_owned(), source })?;
        Ok(Webhook { client, backoff: Backoff { initial: initial_backoff, ..Backoff::default() } })
    }

    /// Posts events, with retries after any failure.
    pub(crate) async fn send(&self, events: &[Bytes]) -> Result<(), String> {
        let list = event_list(events);
        let mut waits = self.backoff.waits();
        loop {
            let error = match self.client.post(list.clone(), TIMEOUT).await {
                // The body of a successful response is ignored.
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
