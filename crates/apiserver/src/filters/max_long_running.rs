//! Bounds the number of long-running requests, such as watches: each takes memory for as long as its client wants, and
//! no seat of priority and fairness. Requests above the bound get 429. Those of `system:masters` do not count, and one
//! user cannot have them all.

use super::{
    filter::{Filter, Rest},
    max_in_flight::too_many_requests,
};
use crate::base::{
    request::{Request, info_of, user_of},
    response::{Response, UntilSent},
};
use parking_lot::Mutex;
use pintle_machinery::user::SYSTEM_MASTERS;
use std::{collections::HashMap, sync::Arc};

/// One user may have one part in this many of all long-running requests.
const USERS_PART: usize = 2;

pub(super) struct MaxLongRunning {
    places: Arc<Places>,
}

impl MaxLongRunning {
    /// A bound of `max` requests.
    pub(super) fn new(max: usize) -> MaxLongRunning {
        MaxLongRunning { places: Arc::new(Places { max, taken: Mutex::default() }) }
    }
}

impl Filter for MaxLongRunning {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        let user = user_of(&request);
        if !info_of(&request).is_long_running() || user.is_member_of(SYSTEM_MASTERS) {
            return next.call(request).await;
        }
        let Some(place) = self.places.take(&user.name) else {
            return too_many_requests(1);
        };
        let mut response = next.call(request).await;
        response.extensions_mut().insert(UntilSent::new(place));
        response
    }
}

struct Places {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_user: HashMap<String, usize>,
}

impl Places {
    fn take(self: &Arc<Places>, user: &str) -> Option<Place> {
        let mut taken = self.taken.lock();
        let of_user = taken.by_user.get(user).copied().unwrap_or_default();
        if taken.all >= self.max || of_user >= self.max.div_ceil(USERS_PART) {
            return None;
        }
        taken.all += 1;
        taken.by_user.insert(user.to_owned(), of_user + 1);
        Some(Place { places: self.clone(), user: user.to_owned() })
    }
}

/// The place of one request.
struct Place {
    places: Arc<Places>,
    user: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        if let Some(of_user) = taken.by_user.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                taken.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_part_of_all_places() {
        let places = Arc::new(Places { max: 4, taken: Mutex::default() });
        let take = |user: &str| places.take(user);
        let mut of_jane = vec![take("jane").unwrap(), take("jane").unwrap()];
        assert!(take("jane").is_none());
        let of_joe = [take("joe").unwrap(), take("joe").unwrap()];
        assert!(take("ann").is_none(), "all are taken");
        drop(of_jane.pop());
        let of_ann = take("ann");
        assert!(of_ann.is_some() && take("jane").is_none());
        drop((of_jane, of_joe, of_ann));
        assert!(places.taken.lock().by_user.is_empty() && places.taken.lock().all == 0);
        assert!(Arc::new(Places { max: 1, taken: Mutex::default() }).take("jane").is_some());
    }
}
