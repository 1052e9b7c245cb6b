//! The contract of storage engines, as tests to run against each.
//!
//! Each guarantee is one async function. It gets a [`StorageFactory`] with its own store, and panics when the engine
//! breaks the guarantee. [`storage_contract!`](crate::storage_contract) turns them all into `#[tokio::test]`s:
//!
//! ```text
//! pintle_storage::storage_contract!(MyFactory::new());
//! pintle_storage::durable_storage_contract!(MyFactory::new());
//! ```
//!
//! The functions assume that there is no other writer.

mod compaction;
mod durable;
mod lifecycle;
mod list;
mod watch;
mod write;

pub use compaction::*;
pub use durable::*;
pub use lifecycle::*;
pub use list::*;
pub use watch::*;
pub use write::*;

use crate::{
    BoxFuture, EventKind, Key, ListRequest, ListResponse, Revision, Storage, StorageError, StorageEvent,
    WatchRequest, WatchStream,
};
use bytes::Bytes;
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

/// Opens engines for the contract's tests.
pub trait StorageFactory: Send + Sync {
    /// Opens the factory's one store: empty at the first call; later calls of a durable engine's factory return all
    /// earlier writes.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>>;
}

/// Instantiates the contract's tests for the engine of a [`StorageFactory`]; the expression creates a new factory for
/// every test.
#[macro_export]
macro_rules! storage_contract {
    ($factory:expr) => {
        $crate::with_storage_contract!(contract_tests { $factory });
    };
}

/// Instantiates the tests of durable engines, in addition to [`storage_contract!`](crate::storage_contract).
#[macro_export]
macro_rules! durable_storage_contract {
    ($factory:expr) => {
        $crate::with_durable_storage_contract!(contract_tests { $factory });
    };
}

/// A running test, which stays on one thread.
pub type RunningTest<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A guarantee's name and test.
pub type ContractTest = (&'static str, for<'a> fn(&'a dyn StorageFactory) -> RunningTest<'a>);

/// All tests of [`storage_contract!`](crate::storage_contract), for engines that are expensive to start for every
/// test.
pub fn storage_contract() -> Vec<ContractTest> {
    crate::with_storage_contract!(contract_list {})
}

/// All tests of [`durable_storage_contract!`](crate::durable_storage_contract).
pub fn durable_storage_contract() -> Vec<ContractTest> {
    crate::with_durable_storage_contract!(contract_list {})
}

#[doc(hidden)]
#[macro_export]
macro_rules! with_storage_contract {
    ($then:ident { $($argument:tt)* }) => {
        $crate::$then! {
            $($argument)*;
            revisions_grow_by_one_from_above_one,
            create_sets_both_revisions,
            create_of_an_existing_key_is_rejected,
            update_replaces_the_expected_revision_only,
            update_of_a_missing_key_conflicts_with_nothing,
            delete_removes_the_expected_revision_only,
            delete_of_an_existing_value_is_like_any_delete,
            failed_writes_take_no_revision,
            create_after_delete_starts_a_new_key,
            values_come_back_byte_for_byte,
            concurrent_writers_get_distinct_ascending_revisions,
            concurrent_writes_of_a_key_have_one_winner,
            concurrent_updates_of_a_key_lose_nothing,
            a_dropped_write_leaves_the_store_consistent,
            a_ttl_deletes_the_key_with_a_revision,
            an_update_replaces_the_ttl,
            a_ttl_beyond_all_time_never_comes,
            list_is_ordered_and_isolated_by_prefix,
            list_pages_cover_everything_once,
            list_at_a_revision_shows_that_state,
            list_pages_at_a_revision_ignore_later_writes,
            list_in_the_future_is_rejected,
            list_sees_acknowledged_writes,
            count_is_the_length_of_the_list,
            watch_replays_history_then_goes_live,
            watch_starts_after_its_revision,
            watch_from_the_future_waits_for_it,
            watch_is_isolated_by_prefix,
            watch_sees_every_write_of_concurrent_writers_once,
            watch_started_among_writes_misses_none,
            watch_next_batch_is_cancel_safe,
            watch_gets_events_before_the_writer_is_answered,
            queued_revision_covers_every_acknowledged_write,
            progress_comes_after_all_events,
            progress_reaches_watches_of_quiet_prefixes,
            compaction_rejects_older_reads_and_watches,
            compaction_keeps_newest_values_and_later_history,
            compaction_keeps_what_later_deletes_need,
            compaction_of_the_future_is_rejected,
            compaction_again_changes_nothing,
            compaction_beside_writers_loses_nothing,
            compaction_reduces_what_was_rewritten,
            close_ends_watches_and_rejects_calls,
            close_twice_is_fine,
            an_open_store_is_healthy_and_has_a_size,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! with_durable_storage_contract {
    ($then:ident { $($argument:tt)* }) => {
        $crate::$then! {
            $($argument)*;
            reopen_keeps_values_and_revisions,
            reopen_keeps_history,
            reopen_keeps_compaction,
            reopen_never_reuses_a_revision,
            reopen_keeps_ttls,
            reopen_resumes_watches_without_gap_or_duplicate,
            reopen_goes_on_with_pages,
            reopen_keeps_what_later_deletes_need,
            reopen_of_an_emptied_store_goes_on,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! contract_tests {
    ($factory:expr; $($test:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::contract::$test(&$factory).await;
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! contract_list {
    (; $($test:ident),* $(,)?) => {
        vec![$((stringify!($test), |factory| Box::pin($crate::contract::$test(factory)))),*]
    };
}

/// The time-out after which an event counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

fn key(text: &str) -> Key {
    Key::new(text)
}

/// Creates a key, which must succeed.
async fn put(storage: &dyn Storage, name: &str, value: &str) -> Revision {
    let created = storage.create(&key(name), Bytes::copy_from_slice(value.as_bytes()).into(), None).await;
    created.unwrap_or_else(|error| panic!("create {name}: {error}"))
}

/// Updates a key, which must succeed.
async fn set(storage: &dyn Storage, name: &str, value: &str, expected: Revision) -> Revision {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let updated = storage.update(&key(name), value.into(), expected, None).await;
    updated.unwrap_or_else(|error| panic!("update {name} at {expected}: {error}"))
}

/// Deletes a key, which must succeed.
async fn remove(storage: &dyn Storage, name: &str, expected: Revision) -> Revision {
    let deleted = storage.delete(&key(name), expected).await;
    deleted.unwrap_or_else(|error| panic!("delete {name} at {expected}: {error}"))
}

async fn current(storage: &dyn Storage) -> Revision {
    storage.current_revision().await.expect("the current revision")
}

fn request(prefix: &str) -> ListRequest {
    ListRequest { prefix: prefix.to_owned(), start_after: None, limit: 0, revision: None }
}

fn request_at(prefix: &str, revision: Revision) -> ListRequest {
    ListRequest { revision: Some(revision), ..request(prefix) }
}

/// The keys and values of a list.
fn pairs(response: &ListResponse) -> Vec<(String, String)> {
    let pair =
        |kv: &crate::KeyValue| (kv.key.as_str().to_owned(), String::from_utf8_lossy(&kv.value).into_owned());
    response.items.iter().map(pair).collect()
}

fn owned(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn expect_list(storage: &dyn Storage, request: ListRequest, expected: &[(&str, &str)]) -> ListResponse {
    let asked = format!("{request:?}");
    let response = storage.get_list(request).await.unwrap_or_else(|error| panic!("{asked}: {error}"));
    assert_eq!(pairs(&response), owned(expected), "{asked}");
    response
}

async fn watch(storage: &dyn Storage, prefix: &str, after: Revision) -> WatchStream {
    let request = WatchRequest { prefix: prefix.to_owned(), after };
    storage.watch(request).await.unwrap_or_else(|error| panic!("watch {prefix} after {after}: {error}"))
}

/// An event, abbreviated: kind, key, value, revision.
type Seen = (EventKind, String, String, Revision);

fn seen(event: StorageEvent) -> Option<Seen> {
    match event {
        StorageEvent::Write { kind, revision, kv } => {
            if kind != EventKind::Delete {
                assert_eq!(kv.mod_revision, revision, "the pair of a write carries the write's revision");
            }
            let value = String::from_utf8_lossy(&kv.value).into_owned();
            Some((kind, kv.key.as_str().to_owned(), value, revision))
        }
        StorageEvent::Progress(_) => None,
        StorageEvent::Error(error) => panic!("the watch ended: {error}"),
    }
}

async fn next_batch(stream: &mut WatchStream) -> Option<Vec<StorageEvent>> {
    tokio::time::timeout(PATIENCE, stream.next_batch()).await.expect("the watch went silent")
}

/// Reads the next `count` writes; fails if the watch delivers more with them.
async fn next_writes(stream: &mut WatchStream, count: usize) -> Vec<Seen> {
    let mut writes = Vec::new();
    while writes.len() < count {
        let batch = next_batch(stream).await.expect("the watch was closed");
        assert!(!batch.is_empty(), "an empty batch");
        writes.extend(batch.into_iter().filter_map(seen));
    }
    assert_eq!(writes.len(), count, "more writes than expected: {writes:?}");
    writes
}

/// Reads all writes up to the progress event of `revision`.
async fn writes_until(stream: &mut WatchStream, storage: &dyn Storage, revision: Revision) -> Vec<Seen> {
    storage.request_progress().await.expect("a progress request");
    let mut writes = Vec::new();
    loop {
        let batch = next_batch(stream).await.expect("the watch was closed");
        assert!(!batch.is_empty(), "an empty batch");
        for event in batch {
            if let StorageEvent::Progress(reached) = event {
                if reached >= revision {
                    return writes;
                }
            } else {
                writes.extend(seen(event));
            }
        }
    }
}

fn event(kind: EventKind, name: &str, value: &str, revision: Revision) -> Seen {
    (kind, name.to_owned(), value.to_owned(), revision)
}

fn assert_compacted<T: std::fmt::Debug>(result: Result<T, StorageError>, at: Revision, what: &str) {
    match result {
        Err(StorageError::Compacted { compacted }) => assert_eq!(compacted, at, "{what}"),
        other => panic!("{what}: expected it to be compacted, got {other:?}"),
    }
}
