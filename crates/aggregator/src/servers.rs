//! Follows the servers behind API services: one task for each server, which asks it for documents when its API services
//! change and when the documents are due. API services with the same service share a server, so that no server is asked
//! twice at a time, and a server that does not answer delays no other.

use crate::{
    api_services::{ApiService, ApiServices},
    backend::{Backend, BackendSpec},
};
use parking_lot::Mutex;
use pintle_apiserver::{post_start_hooks::HookContext, serving::stopped};
use pintle_registry::BoxFuture;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    task::{AbortHandle, JoinSet},
};

/// Uses the documents of servers.
pub(crate) trait Follower: Send + Sync + 'static {
    /// The state of one server, which lasts as long as its task.
    type State: Default + Send;

    /// Called when some API services have changed, before their servers are asked.
    fn api_services_changed(&self);

    /// Asks a server for its documents. Returns the delay after which they are due again.
    fn refresh<'a>(&'a self, server: Behind, state: &'a mut Self::State) -> BoxFuture<'a, Duration>;
}

/// The present API services of one server, at least one.
#[derive(Clone)]
pub(crate) struct Behind {
    pub(crate) backend: Arc<Backend>,
    pub(crate) api_services: Vec<Arc<ApiService>>,
    /// Whether an API service has changed since the last refresh.
    pub(crate) is_changed: bool,
}

struct Server {
    behind: Mutex<Behind>,
    changed: Notify,
}

/// Starts to follow all servers.
pub(crate) fn start<F: Follower>(api_services: &Arc<ApiServices>, follower: &Arc<F>, hook: &HookContext) {
    let (api_services, follower, stopping) =
        (api_services.clone(), follower.clone(), hook.stopping().clone());
    hook.spawn_restarting(move || {
        let (api_services, follower) = (api_services.clone(), follower.clone());
        let mut stopping = stopping.clone();
        async move {
            tokio::select! {
                () = stopped(&mut stopping) => {}
                () = follow(&api_services, &follower) => {}
            }
        }
    });
}

/// Follows all servers. Never returns.
///
/// # Panics
/// When the follower panics.
pub(crate) async fn follow<F: Follower>(api_services: &ApiServices, follower: &Arc<F>) {
    let mut changes = api_services.changes();
    let mut servers: HashMap<BackendSpec, (Arc<Server>, AbortHandle)> = HashMap::new();
    // Dropping it ends the tasks.
    let mut tasks: JoinSet<()> = JoinSet::new();
    api_services.wait_synced().await;
    loop {
        changes.mark_unchanged();
        follower.api_services_changed();
        let snapshot = api_services.current();
        let mut present: HashMap<&BackendSpec, Vec<Arc<ApiService>>> = HashMap::new();
        for service in snapshot.values() {
            let Some(backend) = &service.backend else { continue };
            present.entry(backend.spec()).or_default().push(service.clone());
        }
        servers.retain(|spec, (_, task)| {
            let is_present = present.contains_key(spec);
            if !is_present {
                task.abort();
            }
            is_present
        });
        for (spec, services) in present {
            let Some(backend) = services.first().and_then(|service| service.backend.clone()) else {
                continue;
            };
            let behind = Behind { backend, api_services: services, is_changed: true };
            match servers.get(spec) {
                Some((server, _)) => server.update(behind),
                None => {
                    let server = Arc::new(Server { behind: Mutex::new(behind), changed: Notify::new() });
                    let (own, follower) = (server.clone(), follower.clone());
                    let task = tasks.spawn(async move {
                        let mut state = F::State::default();
                        loop {
                            own.next(&*follower, &mut state).await;
                        }
                    });
                    servers.insert(spec.clone(), (server, task));
                }
            }
        }
        loop {
            tokio::select! {
                // The sender lives as long as the API services.
                _ = changes.changed() => break,
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended && let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }
}

impl Server {
    fn update(&self, new: Behind) {
        let mut behind = self.behind.lock();
        let is_same = behind.api_services.len() == new.api_services.len()
            && behind.api_services.iter().zip(&new.api_services).all(|(old, new)| Arc::ptr_eq(old, new));
        if !is_same {
            *behind = new;
            drop(behind);
            self.changed.notify_one();
        }
    }

    async fn next<F: Follower>(&self, follower: &F, state: &mut F::State) {
        let behind = {
            let mut behind = self.behind.lock();
            let taken = behind.clone();
            behind.is_changed = false;
            taken
        };
        let due = follower.refresh(behind, state).await;
        // Cancelled by the change of an API service.
        let _ = tokio::time::timeout(due, self.changed.notified()).await;
    }
}

/// The delay before another try, which doubles with each failure.
pub(crate) fn back_off(failures: u32, first: Duration, most: Duration) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(30));
    first.saturating_mul(factor).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let delay = |failures| back_off(failures, Duration::from_millis(500), Duration::from_secs(60));
        assert_eq!([0, 1, 2, 3].map(delay), [500, 500, 1000, 2000].map(Duration::from_millis));
        assert_eq!([8, 9, u32::MAX].map(delay), [60; 3].map(Duration::from_secs));
    }
}
