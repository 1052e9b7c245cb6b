//! The queues of one priority level, and the selection of the next request.
//!
//! Fair queueing in virtual time: every queue is treated as if it had the same number of seats, and the request that
//! would then finish first is dispatched next. The duration of a request is unknown beforehand, so it is estimated
//! and corrected when the request finishes. See
//! <https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#queuing> and
//! <https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1040-priority-and-fairness>.
//!
//! A request [arrives](QueueSet::arrive) and is refused, executed, or queued. A queued request is dispatched, or
//! [cancelled](QueueSet::cancel) after its time-out. An executing request [finishes](QueueSet::finish); some then
//! keep lingering seats for a while.
//!
//! There is no clock and no lock here: callers pass the time, and call one at a time. Empty queues take no memory,
//! whatever their number.

mod queue;

use crate::{
    counted_schema::CountedSchema,
    integrator::{Integrator, Observed},
    metrics::LevelMetrics,
    priority_level::{LimitResponse, Queuing},
    request::{RequestAttributes, is_read_only},
    seat_seconds::SeatSeconds,
    work::WorkEstimate,
};
use queue::Queue;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::sync::oneshot;

/// The assumed duration of a request until it finishes.
const ESTIMATED_SERVICE_DURATION: Duration = Duration::from_millis(3);

/// The queues of a priority level.
pub(crate) struct QueueSet {
    response: LimitResponse,
    /// The number of seats that may be in use at once.
    limit: u64,
    metrics: LevelMetrics,
    /// The queues that have requests or lingering seats.
    queues: BTreeMap<usize, Queue>,
    records: HashMap<u64, Record>,
    lingering: BTreeMap<(Duration, u64), Lingering>,
    /// Virtual time: the work that each active queue could have had done by now.
    current_r: SeatSeconds,
    last_time: Duration,
    /// The queue of the last dispatched request.
    robin: usize,
    next_id: u64,
    enqueues: usize,
    active_queues: usize,
    executing: usize,
    waiting: usize,
    seats_waiting: u64,
    seats_in_use: u64,
    /// The part of `seats_in_use` that belongs to queues.
    queued_seats_in_use: u64,
    totals: Totals,
    demand: Integrator,
}

/// Counts since the level was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) dispatched: u64,
    pub(crate) rejected: u64,
    pub(crate) cancelled: u64,
}

/// An arriving request.
pub(crate) struct Arrival {
    pub(crate) schema: Arc<CountedSchema>,
    pub(crate) request: Arc<dyn RequestAttributes>,
    pub(crate) estimate: WorkEstimate,
    /// The hash of its flow.
    pub(crate) hash: u64,
}

/// The decision on an arriving request. The number is its id.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The request executes.
    Execute(u64),
    /// The request is queued. The channel reports its dispatch; after its time-out the caller cancels it.
    Wait(u64, oneshot::Receiver<()>),
    /// The request is refused.
    Reject(RejectReason),
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectReason {
    /// All seats are in use, and the level has no queues.
    ConcurrencyLimit,
    /// All seats are in use, and the queue is full.
    QueueFull,
    /// The request has waited for its time-out.
    TimeOut,
}

impl RejectReason {
    /// The label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            RejectReason::ConcurrencyLimit => "concurrency-limit",
            RejectReason::QueueFull => "queue-full",
            RejectReason::TimeOut => "time-out",
        }
    }
}

/// A waiting or executing request.
pub(crate) struct Record {
    pub(crate) schema: Arc<CountedSchema>,
    pub(crate) request: Arc<dyn RequestAttributes>,
    pub(crate) estimate: WorkEstimate,
    pub(crate) arrival: Duration,
    pub(crate) start: Option<Duration>,
    pub(crate) queue: Option<usize>,
    arrival_r: SeatSeconds,
    total_work: SeatSeconds,
    final_work: SeatSeconds,
    waker: Option<oneshot::Sender<()>>,
}

/// The lingering seats of a finished request.
struct Lingering {
    schema: Arc<CountedSchema>,
    seats: u64,
    queue: Option<usize>,
}

/// A queue, for the debug endpoints.
pub(crate) struct QueueDump {
    pub(crate) index: usize,
    pub(crate) waiting: usize,
    pub(crate) executing: usize,
    pub(crate) seats_in_use: u64,
    pub(crate) next_dispatch_r: SeatSeconds,
    pub(crate) initial_seats_sum: u64,
    pub(crate) max_seats_sum: u64,
    pub(crate) total_work_sum: SeatSeconds,
}

impl Record {
    fn new(now: Duration, arrival: Arrival, current_r: SeatSeconds) -> Record {
        let estimate = arrival.estimate;
        let final_work = SeatSeconds::of(estimate.final_seats as f64, estimate.additional_latency);
        let initial_work = SeatSeconds::of(estimate.initial_seats as f64, ESTIMATED_SERVICE_DURATION);
        Record {
            schema: arrival.schema,
            request: arrival.request,
            estimate,
            arrival: now,
            start: None,
            queue: None,
            arrival_r: current_r,
            total_work: initial_work + final_work,
            final_work,
            waker: None,
        }
    }

    /// Limits the lingering seats to the level's seats, and extends their time instead.
    fn fit(&mut self, limit: u64) {
        if self.estimate.final_seats > limit {
            self.estimate.final_seats = limit;
            self.estimate.additional_latency = self.final_work.duration_per_seat(limit);
        }
    }
}

impl QueueSet {
    /// The queues of a new level, which has no seats until it is configured.
    pub(crate) fn new(now: Duration, response: LimitResponse, metrics: LevelMetrics) -> QueueSet {
        QueueSet {
            response,
            limit: 0,
            metrics,
            queues: BTreeMap::new(),
            records: HashMap::new(),
            lingering: BTreeMap::new(),
            current_r: SeatSeconds::default(),
            last_time: now,
            robin: 0,
            next_id: 0,
            enqueues: 0,
            active_queues: 0,
            executing: 0,
            waiting: 0,
            seats_waiting: 0,
            seats_in_use: 0,
            queued_seats_in_use: 0,
            totals: Totals::default(),
            demand: Integrator::new(now),
        }
    }

    /// Applies a new configuration. Requests stay in their queues.
    pub(crate) fn configure(&mut self, now: Duration, response: LimitResponse, limit: u64, denominator: u64) {
        self.advance(now);
        self.response = response;
        self.limit = limit;
        let places = match response {
            LimitResponse::Queue(queuing) => queuing.queues.saturating_mul(queuing.queue_length_limit.max(1)),
            LimitResponse::Exempt | LimitResponse::Reject => 1,
        };
        self.metrics.waiting.set_denominator(now, places as f64);
        self.metrics.executing.set_denominator(now, denominator as f64);
        self.metrics.seats.set_denominator(now, denominator as f64);
        self.metrics.demand.set_denominator(now, denominator as f64);
        self.dispatch(now);
    }

    /// Handles an arriving request.
    pub(crate) fn arrive(&mut self, now: Duration, arrival: Arrival) -> Decision {
        self.advance(now);
        match self.response {
            LimitResponse::Queue(queuing) => self.arrive_at_queues(now, arrival, queuing),
            LimitResponse::Exempt | LimitResponse::Reject => {
                if !self.can_accommodate(arrival.estimate.max_seats()) {
                    return self.reject(&arrival.schema, RejectReason::ConcurrencyLimit);
                }
                let id = self.insert(Record::new(now, arrival, self.current_r));
                self.begin(now, id);
                Decision::Execute(id)
            }
        }
    }

    /// Cancels a waiting request. Returns whether it was waiting: one that was dispatched meanwhile has to be
    /// finished.
    pub(crate) fn cancel(&mut self, now: Duration, id: u64) -> bool {
        self.advance(now);
        if self.records.get(&id).is_none_or(|record| record.start.is_some()) {
            return false;
        }
        let Some(record) = self.records.remove(&id) else { return false };
        self.leave_queue(now, id, &record);
        if let Some(queue) = record.queue.and_then(|index| self.queues.get(&index))
            && !queue.is_active()
        {
            self.active_queues -= 1;
        }
        record.schema.metrics.waited(false, now.saturating_sub(record.arrival));
        record.schema.metrics.reject(RejectReason::TimeOut.as_str());
        self.totals.rejected += 1;
        self.totals.cancelled += 1;
        self.note_demand(now);
        self.bound(record.queue);
        self.remove_if_empty(record.queue);
        // The next request of its queue may need fewer seats.
        self.dispatch(now);
        true
    }

    /// Finishes an executing request.
    pub(crate) fn finish(&mut self, now: Duration, id: u64) {
        self.advance(now);
        let Some(record) = self.records.remove(&id) else { return };
        let Some(start) = record.start else { return };
        self.executing -= 1;
        let metrics = &record.schema.metrics;
        metrics.add_executing(-1);
        let took = now.saturating_sub(start);
        metrics.executed(record.request.verb() == "watch", took);
        self.metrics.all().kind(is_read_only(record.request.verb())).executing.add(now, -1.0);
        self.metrics.executing.set(now, self.executing as f64);
        if let Some(queue) = record.queue.and_then(|index| self.queues.get_mut(&index)) {
            queue.executing -= 1;
            // Corrects the estimate by the actual duration.
            let seats = record.estimate.initial_seats as f64;
            queue.next_dispatch_r += SeatSeconds::of(seats, took);
            queue.next_dispatch_r -= SeatSeconds::of(seats, ESTIMATED_SERVICE_DURATION);
            if !queue.is_active() {
                self.active_queues -= 1;
            }
        }
        self.bound(record.queue);
        let seats = record.estimate.max_seats();
        let lingering = Lingering { schema: record.schema, seats, queue: record.queue };
        match record.estimate.additional_latency {
            Duration::ZERO => self.release(now, &lingering),
            latency => drop(self.lingering.insert((now + latency, id), lingering)),
        }
        self.dispatch(now);
    }

    /// Applies all releases up to `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some(entry) = self.lingering.first_entry()
            && entry.key().0 <= now
        {
            let then = entry.key().0;
            let lingering = entry.remove();
            self.sync_time(then);
            self.release(then, &lingering);
            self.dispatch(then);
        }
        self.sync_time(now);
        self.metrics.current_r.set(self.current_r.as_f64());
    }

    /// The time of the next release of lingering seats, if requests wait for seats. Otherwise the next arrival
    /// releases them: most writes have lingering seats, and few requests wait.
    pub(crate) fn next_release(&self) -> Option<Duration> {
        let ((when, _), _) = self.lingering.first_key_value().filter(|_| self.waiting > 0)?;
        Some(*when)
    }

    /// Whether no request waits or executes.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0
    }

    /// The statistics of the seats that the level could use, since the last call.
    pub(crate) fn reset_demand(&mut self, now: Duration) -> Observed {
        self.demand.reset(now)
    }

    fn arrive_at_queues(&mut self, now: Duration, arrival: Arrival, queuing: Queuing) -> Decision {
        let index = self.shuffle_shard(arrival.hash, queuing);
        let length = self.queues.get(&index).map_or(0, |queue| queue.waiting.len());
        if self.seats_in_use >= self.limit && length >= queuing.queue_length_limit {
            arrival.schema.metrics.waited(false, Duration::ZERO);
            return self.reject(&arrival.schema, RejectReason::QueueFull);
        }
        let mut record = Record::new(now, arrival, self.current_r);
        record.queue = Some(index);
        let queue = self.queues.entry(index).or_default();
        if !queue.is_active() {
            self.active_queues += 1;
            queue.next_dispatch_r = self.current_r;
        }
        record.schema.metrics.queue_length(length + 1);
        let seats = record.estimate.max_seats();
        if self.waiting == 0 && self.seats_in_use < self.limit && self.can_accommodate(seats) {
            // No request is before it.
            let start = self.queues.get(&index).map_or(self.current_r, |queue| queue.next_dispatch_r);
            let id = self.insert(record);
            self.robin = index;
            self.note_dispatch(start, [start, start], index);
            self.begin(now, id);
            return Decision::Execute(id);
        }
        let (sender, receiver) = oneshot::channel();
        record.waker = Some(sender);
        record.schema.metrics.add_waiting(1, signed(seats));
        self.metrics.all().kind(is_read_only(record.request.verb())).note_waiting(now, 1);
        self.waiting += 1;
        self.seats_waiting += seats;
        let (estimate, work) = (record.estimate, record.total_work);
        let id = self.insert(record);
        if let Some(queue) = self.queues.get_mut(&index) {
            queue.push(id, &estimate, work);
        }
        self.metrics.waiting.set(now, self.waiting as f64);
        self.note_demand(now);
        self.bound(Some(index));
        self.dispatch(now);
        match self.records.get(&id).is_some_and(|record| record.start.is_some()) {
            true => Decision::Execute(id),
            false => Decision::Wait(id, receiver),
        }
    }

    /// The queue of the hand with the least waiting work. Hands overlap: among equal queues the first one varies,
    /// which keeps flows apart.
    fn shuffle_shard(&mut self, hash: u64, queuing: Queuing) -> usize {
        let hand = queuing.dealer.deal(hash);
        let cards = hand.cards();
        let offset = self.enqueues % cards.len().max(1);
        self.enqueues = self.enqueues.wrapping_add(1);
        let work = |index: &usize| {
            self.queues.get(index).map_or(SeatSeconds::default(), |queue| queue.total_work_sum)
        };
        let (before, from) = cards.split_at(offset);
        // The first of equal ones.
        from.iter().chain(before).min_by_key(|index| work(index)).copied().unwrap_or_default()
    }

    fn reject(&mut self, schema: &CountedSchema, reason: RejectReason) -> Decision {
        self.totals.rejected += 1;
        schema.metrics.reject(reason.as_str());
        Decision::Reject(reason)
    }

    fn insert(&mut self, record: Record) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.records.insert(id, record);
        id
    }

    /// Dispatches as many requests as there are seats for.
    fn dispatch(&mut self, now: Duration) {
        while self.waiting > 0 && self.seats_in_use < self.limit && self.dispatch_one(now) {}
    }

    /// Dispatches the next request, unless it needs more seats than are free.
    fn dispatch_one(&mut self, now: Duration) -> bool {
        let Some(next) = self.choose() else { return false };
        let Some(record) = self.records.get_mut(&next.id) else { return false };
        let seats = record.estimate.max_seats();
        let waker = record.waker.take();
        if !self.can_accommodate(seats) {
            if let Some(record) = self.records.get_mut(&next.id) {
                record.waker = waker;
                record.schema.metrics.no_accommodation();
            }
            return false;
        }
        self.robin = next.index;
        self.note_dispatch(next.start, next.bounds, next.index);
        if let Some(record) = self.records.remove(&next.id) {
            self.leave_queue(now, next.id, &record);
            self.records.insert(next.id, record);
        }
        self.begin(now, next.id);
        self.bound(Some(next.index));
        if let Some(waker) = waker {
            // A dropped receiver returns its seat at once.
            let _ = waker.send(());
        }
        true
    }

    /// Selects, among the oldest requests of all queues, the one that would finish first in virtual time. The search
    /// starts after the last dispatched queue, so that another queue wins among equal ones.
    fn choose(&self) -> Option<Next> {
        let behind = self.queues.range(self.robin + 1..);
        let before = self.queues.range(..=self.robin);
        let mut best: Option<(SeatSeconds, usize, u64, SeatSeconds)> = None;
        let mut bounds: Option<[SeatSeconds; 2]> = None;
        for (index, queue) in behind.chain(before) {
            let Some(id) = queue.waiting.first() else { continue };
            let Some(record) = self.records.get(id) else { continue };
            let start = queue.next_dispatch_r;
            let [least, most] = bounds.unwrap_or([start, start]);
            bounds = Some([least.min(start), most.max(start)]);
            let finish = start + record.total_work;
            if best.is_none_or(|(least, ..)| finish < least) {
                best = Some((finish, *index, *id, start));
            }
        }
        let (_, index, id, start) = best?;
        Some(Next { index, id, start, bounds: bounds? })
    }

    fn note_dispatch(&self, start: SeatSeconds, [least, most]: [SeatSeconds; 2], index: usize) {
        let seats = self.queues.get(&index).map_or(0, |queue| queue.seats_in_use);
        let in_progress = SeatSeconds::of(seats as f64, ESTIMATED_SERVICE_DURATION);
        let values = [self.current_r, start, least, most, least - in_progress, most - in_progress];
        self.metrics.note_dispatch(values.map(SeatSeconds::as_f64));
    }

    /// Removes a request from the waiting ones.
    fn leave_queue(&mut self, now: Duration, id: u64, record: &Record) {
        let seats = record.estimate.max_seats();
        self.waiting -= 1;
        self.seats_waiting -= seats;
        if let Some(queue) = record.queue.and_then(|index| self.queues.get_mut(&index)) {
            queue.remove(id, &record.estimate, record.total_work);
        }
        record.schema.metrics.add_waiting(-1, -signed(seats));
        self.metrics.all().kind(is_read_only(record.request.verb())).note_waiting(now, -1);
        self.metrics.waiting.set(now, self.waiting as f64);
    }

    /// Starts executing a request that has left its queue: takes its seats.
    fn begin(&mut self, now: Duration, id: u64) {
        let limit = self.limit;
        let Some(record) = self.records.get_mut(&id) else { return };
        record.start = Some(now);
        if record.queue.is_some() {
            record.fit(limit);
        }
        let seats = record.estimate.max_seats();
        self.executing += 1;
        self.seats_in_use += seats;
        self.totals.dispatched += 1;
        if let Some(queue) = record.queue.and_then(|index| self.queues.get_mut(&index)) {
            self.queued_seats_in_use += seats;
            queue.executing += 1;
            queue.seats_in_use += seats;
            queue.next_dispatch_r += record.total_work;
        }
        let metrics = &record.schema.metrics;
        metrics.dispatched();
        metrics.add_executing(1);
        metrics.add_executing_seats(signed(seats));
        if self.response != LimitResponse::Exempt {
            metrics.waited(true, now.saturating_sub(record.arrival));
        }
        self.metrics.all().kind(is_read_only(record.request.verb())).executing.add(now, 1.0);
        self.metrics.executing.set(now, self.executing as f64);
        self.metrics.seats.set(now, self.seats_in_use as f64);
        self.note_demand(now);
    }

    /// Releases seats.
    fn release(&mut self, now: Duration, lingering: &Lingering) {
        self.seats_in_use -= lingering.seats;
        if let Some(queue) = lingering.queue.and_then(|index| self.queues.get_mut(&index)) {
            self.queued_seats_in_use -= lingering.seats;
            queue.seats_in_use -= lingering.seats;
        }
        lingering.schema.metrics.add_executing_seats(-signed(lingering.seats));
        self.metrics.seats.set(now, self.seats_in_use as f64);
        self.note_demand(now);
        self.remove_if_empty(lingering.queue);
    }

    fn remove_if_empty(&mut self, index: Option<usize>) {
        if let Some(index) = index
            && self.queues.get(&index).is_some_and(|queue| !queue.is_active() && queue.seats_in_use == 0)
        {
            self.queues.remove(&index);
        }
    }

    /// Whether `seats` more seats can be taken now. A request wider than the limit executes when it is alone.
    fn can_accommodate(&self, seats: u64) -> bool {
        match self.response {
            LimitResponse::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    /// A queue does not accumulate unused seats: its next request cannot be dispatched, in virtual time, before it
    /// arrived.
    fn bound(&mut self, index: Option<usize>) {
        let Some(queue) = index.and_then(|index| self.queues.get_mut(&index)) else { return };
        let Some(record) = queue.waiting.first().and_then(|id| self.records.get(id)) else { return };
        queue.next_dispatch_r = queue.next_dispatch_r.max(record.arrival_r);
    }

    fn sync_time(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.last_time);
        self.last_time = self.last_time.max(now);
        if self.active_queues == 0 || passed.is_zero() {
            return;
        }
        let seats = (self.queued_seats_in_use + self.seats_waiting).min(self.limit);
        self.current_r += SeatSeconds::of(seats as f64 / self.active_queues as f64, passed);
    }

    fn note_demand(&mut self, now: Duration) {
        let seats = (self.seats_in_use + self.seats_waiting) as f64;
        self.demand.set(now, seats);
        self.metrics.demand.set(now, seats);
    }
}

/// The data of the debug endpoints.
impl QueueSet {
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn executing(&self) -> usize {
        self.executing
    }

    pub(crate) fn queues_with_waiting(&self) -> usize {
        self.queues.values().filter(|queue| !queue.waiting.is_empty()).count()
    }

    /// The configured number of queues.
    pub(crate) fn wanted_queues(&self) -> usize {
        match self.response {
            LimitResponse::Queue(queuing) => queuing.queues,
            LimitResponse::Exempt | LimitResponse::Reject => 0,
        }
    }

    /// The queues that are not empty, in order.
    pub(crate) fn dump_queues(&self) -> impl Iterator<Item = QueueDump> {
        self.queues.iter().map(|(index, queue)| QueueDump {
            index: *index,
            waiting: queue.waiting.len(),
            executing: queue.executing,
            seats_in_use: queue.seats_in_use,
            next_dispatch_r: queue.next_dispatch_r,
            initial_seats_sum: queue.initial_seats_sum,
            max_seats_sum: queue.max_seats_sum,
            total_work_sum: queue.total_work_sum,
        })
    }

    /// All requests: the waiting ones of each queue with their positions, then the executing ones.
    pub(crate) fn dump_requests(&self) -> Vec<(Option<usize>, &Record)> {
        let waiting = self.queues.values().flat_map(|queue| queue.waiting.iter().enumerate());
        let waiting = waiting.filter_map(|(at, id)| Some((Some(at), self.records.get(id)?)));
        let mut all: Vec<_> = waiting.collect();
        let mut executing: Vec<_> =
            self.records.iter().filter(|(_, record)| record.start.is_some()).collect();
        executing.sort_by_key(|(id, record)| (record.queue.is_none(), record.queue, **id));
        all.extend(executing.into_iter().map(|(_, record)| (None, record)));
        all
    }
}

/// The request to dispatch next.
struct Next {
    index: usize,
    id: u64,
    start: SeatSeconds,
    /// The smallest and the largest start of all queues.
    bounds: [SeatSeconds; 2],
}

fn signed(seats: u64) -> i64 {
    i64::try_from(seats).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
