//! The compiled forms of configuration objects, kept while the objects are unchanged.

mod forms;

pub(crate) use forms::Forms;

use parking_lot::Mutex;
use pintle_admission::{AdmissionRequest, ListState};
use pintle_machinery::{GroupResource, Status, Value};
use pintle_offload::leave_worker;
use std::sync::Arc;

/// The compiled form of all objects of some resources.
pub(crate) trait Compiled<const N: usize>: Default {
    /// Whether it is compiled from these objects, in the state that they are in.
    fn is_of(&self, objects: &[Vec<Arc<Value>>; N]) -> bool;
}

/// The last compiled form of all objects of some resources.
pub(crate) struct Kept<C, const N: usize> {
    resources: [GroupResource; N],
    last: Mutex<Last<C>>,
}

/// A compiled form, and the states of the caches from which the objects were read.
struct Last<C> {
    compiled: Arc<C>,
    states: Option<Vec<ListState>>,
}

impl<C: Compiled<N>, const N: usize> Kept<C, N> {
    /// Nothing is compiled yet from the objects of these resources of `admissionregistration.k8s.io`.
    pub(crate) fn new(resources: [&str; N]) -> Kept<C, N> {
        let resource = |resource: &str| GroupResource::new("admissionregistration.k8s.io", resource);
        let last = Last { compiled: Arc::new(C::default()), states: None };
        Kept { resources: resources.map(resource), last: Mutex::new(last) }
    }

    /// The form of the present objects. `compile` makes it from the last one and from the objects of each resource; it
    /// is called off the workers, and only if there is a change.
    ///
    /// # Errors
    /// When the objects are not cached and cannot be read from the store.
    pub(crate) async fn current(
        &self,
        request: &AdmissionRequest<'_>,
        compile: impl FnOnce(&C, [Vec<Arc<Value>>; N]) -> C,
    ) -> Result<Arc<C>, Status> {
        let last = {
            let last = self.last.lock();
            let is_unchanged = |states: &Vec<ListState>| {
                self.resources
                    .iter()
                    .zip(states)
                    .all(|(resource, state)| request.lister.is_in_state(resource, state))
            };
            if last.states.as_ref().is_some_and(is_unchanged) {
                return Ok(last.compiled.clone());
            }
            last.compiled.clone()
        };
        // The states are older than the lists, if they differ at all, so that no change is missed.
        let states = self.resources.iter().map(|resource| request.lister.state(resource)).collect();
        let mut objects = [const { Vec::new() }; N];
        for (objects, resource) in objects.iter_mut().zip(&self.resources) {
            *objects = request.list(resource, "").await?;
        }
        if last.is_of(&objects) {
            self.last.lock().states = states;
            return Ok(last);
        }
        leave_worker().await;
        let compiled = Arc::new(compile(&last, objects));
        *self.last.lock() = Last { compiled: compiled.clone(), states };
        Ok(compiled)
    }
}
