//! Bounds the number of open connections.
//!
//! The bound leaves file descriptors and memory for the rest of the server. At the bound, a new connection evicts the
//! connections that have been idle for the longest time, handshakes included, and those whose clients do not read the
//! responses that they got. It is refused when every other connection has a request.

use crate::base::connection::ConnectionHandle;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// The number of connections that one eviction closes: each eviction scans all connections.
const EVICTED_AT_ONCE: usize = 64;

pub(super) struct Connections {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    by_id: HashMap<u64, ConnectionHandle>,
}

impl Connections {
    /// A bound of `max` connections.
    pub(super) fn new(max: usize) -> Arc<Connections> {
        Arc::new(Connections { max: max.max(1), open: Mutex::default() })
    }

    /// Admits a new connection; `None` at the bound when no connection is idle.
    pub(super) fn admit(self: &Arc<Connections>, connection: ConnectionHandle) -> Option<Place> {
        if self.open.lock().by_id.len() >= self.max && self.evict() == 0 {
            return None;
        }
        let mut open = self.open.lock();
        open.next_id += 1;
        let id = open.next_id;
        open.by_id.insert(id, connection);
        Some(Place { id, connections: self.clone() })
    }

    /// Closes the connections that have been idle for the longest time, and returns their number.
    pub(super) fn evict(&self) -> usize {
        let mut open = self.open.lock();
        let idle =
            open.by_id.iter().filter_map(|(id, connection)| Some((connection.gives_way_since()?, *id)));
        let mut idle: Vec<_> = idle.collect();
        let count = EVICTED_AT_ONCE.min(self.max.div_ceil(4)).min(idle.len());
        if count < idle.len() {
            idle.select_nth_unstable(count);
        }
        idle.truncate(count);
        for (_, id) in idle {
            if let Some(connection) = open.by_id.remove(&id) {
                connection.sever();
            }
        }
        count
    }
}

/// One admitted connection; dropping it frees the place.
pub(super) struct Place {
    id: u64,
    connections: Arc<Connections>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open.lock().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::connection::End;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_takes_the_place_of_the_one_idle_for_the_longest_time() {
        let connections = Connections::new(3);
        let handles = [(); 5].map(|()| ConnectionHandle::new(10));
        let mut places = Vec::new();
        for handle in &handles[..3] {
            places.push(connections.admit(handle.clone()).unwrap());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let [first, second, third, fourth, fifth] = &handles;
        // The oldest has a request, and the next has just had one.
        let _first = first.begin();
        drop(second.begin().answered());
        let place = connections.admit(fourth.clone());
        assert!(place.is_some());
        assert_eq!(third.end().await, End::Now);
        let requests = [second.begin(), fourth.begin()];
        assert!(connections.admit(fifth.clone()).is_none(), "all have requests");
        drop(place);
        assert!(connections.admit(fifth.clone()).is_some());
        drop(requests);
    }
}
