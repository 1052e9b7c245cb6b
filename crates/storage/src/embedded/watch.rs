//! The history of watches, from the table and the backlog.

use super::{read, shared::Shared};
use crate::{BoxFuture, Revision, StorageError, StorageEvent, replay::History};
use std::sync::Arc;

pub(super) struct EmbeddedHistory(pub(super) Arc<Shared>);

impl History for EmbeddedHistory {
    fn read<'a>(
        &'a mut self,
        prefix: &'a str,
        after: Revision,
        until: Revision,
    ) -> BoxFuture<'a, Result<(Vec<StorageEvent>, Revision), StorageError>> {
        Box::pin(async move {
            let (shared, prefix) = (Arc::clone(&self.0), prefix.to_owned());
            let read = tokio::task::spawn_blocking(move || read::history(&shared, &prefix, after, until));
            read.await.unwrap_or_else(|error| Err(StorageError::Engine(error.to_string())))
        })
    }
}
