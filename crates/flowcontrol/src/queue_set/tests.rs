use super::*;
use crate::{
    clock::RealClock, dealer::Dealer, flow_schema::FlowSchema, metrics::FlowControlMetrics,
    metrics::FlowMetrics, testing::TestRequest,
};
use pintle_machinery::json;

/// A level with its own time.
struct Level {
    set: QueueSet,
    schema: Arc<CountedSchema>,
    now: Duration,
}

fn queuing(queues: usize, hand_size: usize, queue_length_limit: usize) -> LimitResponse {
    let dealer = Dealer::new(queues, hand_size).unwrap();
    LimitResponse::Queue(Queuing { queues, dealer, hand_size, queue_length_limit })
}

impl Level {
    fn new(response: LimitResponse, limit: u64) -> Level {
        let metrics = Arc::new(FlowControlMetrics::new(Arc::new(RealClock::default())).unwrap());
        let schema = Arc::new(CountedSchema {
            schema: FlowSchema::read(&json!({"metadata": {"name": "schema"}})),
            metrics: FlowMetrics::new(&metrics, "level", "schema"),
        });
        let now = Duration::from_secs(1);
        let mut set = QueueSet::new(now, response, LevelMetrics::new(&metrics, "level"));
        set.configure(now, response, limit, limit);
        Level { set, schema, now }
    }

    fn arrive(&mut self, hash: u64, estimate: WorkEstimate) -> Decision {
        let request = Arc::new(TestRequest::resource("get", "", "pods"));
        self.set.arrive(self.now, Arrival { schema: self.schema.clone(), request, estimate, hash })
    }

    fn begin(&mut self, hash: u64) -> u64 {
        match self.arrive(hash, WorkEstimate::seats(1)) {
            Decision::Execute(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self, hash: u64) -> (u64, oneshot::Receiver<()>) {
        self.wait_for(hash, WorkEstimate::seats(1))
    }

    fn wait_for(&mut self, hash: u64, estimate: WorkEstimate) -> (u64, oneshot::Receiver<()>) {
        match self.arrive(hash, estimate) {
            Decision::Wait(id, receiver) => (id, receiver),
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    fn finish(&mut self, id: u64) {
        self.set.finish(self.now, id);
    }

    fn assert_empty(&self) {
        let set = &self.set;
        assert!(set.is_idle() && set.queues.is_empty() && set.records.is_empty() && set.lingering.is_empty());
        assert_eq!((set.seats_in_use, set.seats_waiting, set.queued_seats_in_use), (0, 0, 0));
        assert_eq!(set.active_queues, 0);
    }
}

fn is_let_in(receiver: &mut oneshot::Receiver<()>) -> bool {
    receiver.try_recv().is_ok()
}

#[test]
fn the_exempt_are_never_held_up() {
    let mut level = Level::new(LimitResponse::Exempt, 0);
    let ids: Vec<u64> = (0..1000).map(|_| level.begin(0)).collect();
    assert_eq!(level.set.executing(), 1000);
    for id in ids {
        level.finish(id);
    }
    level.assert_empty();
}

#[test]
fn without_queues_too_many_are_refused() {
    let mut level = Level::new(LimitResponse::Reject, 2);
    let (one, two) = (level.begin(0), level.begin(1));
    let refused = level.arrive(2, WorkEstimate::seats(1));
    assert!(matches!(refused, Decision::Reject(RejectReason::ConcurrencyLimit)));
    level.finish(one);
    let three = level.begin(3);
    level.finish(two);
    level.finish(three);
    // A request wider than the limit executes when it is alone.
    let Decision::Execute(wide) = level.arrive(0, WorkEstimate::seats(5)) else { panic!() };
    let refused = level.arrive(0, WorkEstimate::seats(1));
    assert!(matches!(refused, Decision::Reject(RejectReason::ConcurrencyLimit)));
    level.finish(wide);
    assert_eq!(level.set.totals(), Totals { dispatched: 4, rejected: 2, cancelled: 0 });
    level.assert_empty();
}

#[test]
fn full_queues_refuse_and_others_do_not() {
    let mut level = Level::new(queuing(2, 1, 2), 1);
    let first = level.begin(0);
    let waiting = [level.wait(0), level.wait(0)];
    let refused = level.arrive(0, WorkEstimate::seats(1));
    assert!(matches!(refused, Decision::Reject(RejectReason::QueueFull)));
    let other = level.wait(1);
    level.finish(first);
    for (id, _) in waiting.iter().chain([&other]) {
        // Requests that still wait are cancelled.
        if !level.set.cancel(level.now, *id) {
            level.finish(*id);
        }
    }
    level.assert_empty();
}

#[test]
fn a_flow_that_floods_waits_behind_itself() {
    let mut level = Level::new(queuing(2, 1, 100), 1);
    let mut served = level.begin(0);
    let mut flood: Vec<_> = (0..20).map(|_| level.wait(0)).collect();
    level.pass(10);
    level.finish(served);
    let (id, mut first) = flood.remove(0);
    assert!(is_let_in(&mut first));
    served = id;
    // A request of another flow is next, however many of the first flow wait.
    let (quiet, mut receiver) = level.wait(1);
    level.pass(10);
    level.finish(served);
    assert!(is_let_in(&mut receiver));
    assert!(flood.iter_mut().all(|(_, receiver)| !is_let_in(receiver)));
    level.pass(10);
    level.finish(quiet);
    for (id, mut receiver) in flood {
        assert!(is_let_in(&mut receiver));
        level.finish(id);
    }
    level.assert_empty();
}

#[test]
fn two_floods_share_by_the_time_they_take() {
    // Requests of one flow take three times as long as the other's: it gets a quarter of the requests.
    let mut level = Level::new(queuing(2, 1, 1000), 1);
    let mut waiting = [level.wait_list(0, 200), level.wait_list(1, 200)];
    let mut served = [0u32; 2];
    for _ in 0..120 {
        let flow = usize::from(waiting[1].front_mut().is_some_and(|(_, receiver)| is_let_in(receiver)));
        if flow == 0 {
            assert!(is_let_in(&mut waiting[0].front_mut().unwrap().1));
        }
        let (id, _) = waiting[flow].pop_front().unwrap();
        level.pass(if flow == 0 { 30 } else { 10 });
        level.finish(id);
        served[flow] += 1;
    }
    assert!((28..=32).contains(&served[0]) && (88..=92).contains(&served[1]), "{served:?}");
}

impl Level {
    /// Queues `count` requests of a flow. One that executes at once is in the list, too, as already dispatched.
    fn wait_list(
        &mut self,
        hash: u64,
        count: usize,
    ) -> std::collections::VecDeque<(u64, oneshot::Receiver<()>)> {
        let mut list = std::collections::VecDeque::new();
        while list.len() < count {
            match self.arrive(hash, WorkEstimate::seats(1)) {
                Decision::Wait(id, receiver) => list.push_back((id, receiver)),
                Decision::Execute(id) => {
                    let (sender, receiver) = oneshot::channel();
                    sender.send(()).unwrap();
                    list.push_back((id, receiver));
                }
                Decision::Reject(reason) => panic!("{reason:?}"),
            }
        }
        list
    }
}

#[test]
fn wide_requests_wait_until_there_are_enough_seats() {
    let mut level = Level::new(queuing(4, 1, 10), 3);
    let ids = [level.begin(0), level.begin(1)];
    let (wide, mut receiver) = level.wait_for(2, WorkEstimate::seats(2));
    // The request behind it is not dispatched before it, although there is a seat.
    let (narrow, mut later) = level.wait(2);
    assert!(!is_let_in(&mut receiver) && !is_let_in(&mut later));
    level.finish(ids[0]);
    assert!(is_let_in(&mut receiver) && !is_let_in(&mut later));
    level.finish(ids[1]);
    assert!(is_let_in(&mut later));
    level.finish(wide);
    level.finish(narrow);
    level.assert_empty();
}

#[test]
fn who_gives_up_makes_place_for_those_behind() {
    let mut level = Level::new(queuing(1, 1, 10), 2);
    let id = level.begin(0);
    let (wide, _) = level.wait_for(0, WorkEstimate::seats(2));
    let (narrow, mut receiver) = level.wait(0);
    assert!(!is_let_in(&mut receiver));
    assert!(level.set.cancel(level.now, wide));
    assert!(is_let_in(&mut receiver));
    // Too late: the request executes already.
    assert!(!level.set.cancel(level.now, narrow));
    level.finish(narrow);
    level.finish(id);
    assert_eq!(level.set.totals(), Totals { dispatched: 2, rejected: 1, cancelled: 1 });
    level.assert_empty();
}

#[test]
fn seats_are_lingered_on_after_the_answer() {
    let mut level = Level::new(queuing(1, 1, 10), 2);
    let estimate =
        WorkEstimate { initial_seats: 1, final_seats: 8, additional_latency: Duration::from_millis(5) };
    let Decision::Execute(id) = level.arrive(0, estimate) else { panic!() };
    let (next, mut receiver) = level.wait(0);
    level.pass(1);
    level.finish(id);
    // Eight seats for 5 ms are two seats for 20 ms.
    assert_eq!(level.set.next_release(), Some(level.now + Duration::from_millis(20)));
    assert!(level.set.executing() == 0 && !is_let_in(&mut receiver));
    level.pass(19);
    level.set.advance(level.now);
    assert!(!is_let_in(&mut receiver));
    level.pass(1);
    level.set.advance(level.now);
    assert!(is_let_in(&mut receiver));
    level.finish(next);
    level.assert_empty();
}

#[test]
fn more_seats_let_more_in_and_fewer_queues_are_emptied() {
    let mut level = Level::new(queuing(64, 1, 10), 1);
    let first = level.begin(5);
    let mut waiting: Vec<_> = (10..20).map(|hash| level.wait(hash)).collect();
    level.set.configure(level.now, queuing(2, 1, 10), 6, 6);
    let let_in = waiting.iter_mut().filter_map(|(_, receiver)| is_let_in(receiver).then_some(())).count();
    assert_eq!(let_in, 5);
    level.set.configure(level.now, LimitResponse::Reject, 6, 6);
    let refused = level.arrive(0, WorkEstimate::seats(1));
    assert!(matches!(refused, Decision::Reject(RejectReason::ConcurrencyLimit)));
    level.finish(first);
    for (id, _) in waiting {
        level.finish(id);
    }
    level.assert_empty();
}

#[test]
fn virtual_time_goes_by_seats_and_queues() {
    let mut level = Level::new(queuing(4, 1, 10), 2);
    let r = |level: &Level| level.set.current_r.to_string();
    level.pass(1000);
    let one = level.begin(0);
    assert_eq!(r(&level), "0.00000000ss");
    // One seat wanted by one queue.
    level.pass(100);
    let two = level.begin(1);
    assert_eq!(r(&level), "0.10000000ss");
    // Three seats wanted, two available, three queues.
    let (three, _receiver) = level.wait(2);
    level.pass(300);
    level.finish(one);
    assert_eq!(r(&level), "0.30000000ss");
    level.finish(two);
    level.finish(three);
    level.pass(5000);
    level.set.advance(level.now);
    assert_eq!(r(&level), "0.30000000ss");
    level.assert_empty();
}

mod model {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Arrive { hash: u64, seats: u64, final_seats: u64, latency: u64 },
        Finish(usize),
        Cancel(usize),
        Pass(u64),
        Configure { queues: usize, limit: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0u64..1000, 1u64..4, 0u64..6, 0u64..20)
                .prop_map(|(hash, seats, final_seats, latency)| Step::Arrive { hash, seats, final_seats, latency }),
            4 => (0usize..100).prop_map(Step::Finish),
            1 => (0usize..100).prop_map(Step::Cancel),
            2 => (0u64..50).prop_map(Step::Pass),
            1 => (0usize..9, 0u64..8).prop_map(|(queues, limit)| Step::Configure { queues, limit }),
        ]
    }

    proptest! {
        /// For any sequence of operations, no seat is assigned twice, no request is lost, and everything is empty at
        /// the end.
        #[test]
        fn seats_and_requests_are_accounted_for(steps in prop::collection::vec(step(), 1..200)) {
            let mut level = Level::new(queuing(8, 2, 3), 4);
            let mut executing = Vec::new();
            let mut waiting: Vec<(u64, oneshot::Receiver<()>)> = Vec::new();
            for step in steps {
                let widest_before = level.set.seats_in_use;
                match step {
                    Step::Arrive { hash, seats, final_seats, latency } => {
                        let additional_latency = Duration::from_millis(if final_seats == 0 { 0 } else { latency });
                        let estimate = WorkEstimate { initial_seats: seats, final_seats, additional_latency };
                        match level.arrive(hash, estimate) {
                            Decision::Execute(id) => executing.push(id),
                            Decision::Wait(id, receiver) => waiting.push((id, receiver)),
                            Decision::Reject(_) => {}
                        }
                    }
                    Step::Finish(at) if !executing.is_empty() => {
                        let id = executing.swap_remove(at % executing.len());
                        level.finish(id);
                    }
                    Step::Cancel(at) if !waiting.is_empty() => {
                        let (id, _) = waiting.swap_remove(at % waiting.len());
                        if !level.set.cancel(level.now, id) {
                            executing.push(id);
                        }
                    }
                    Step::Pass(milliseconds) => {
                        level.pass(milliseconds);
                        level.set.advance(level.now);
                    }
                    Step::Configure { queues, limit } => {
                        let response = match queues {
                            0 => LimitResponse::Reject,
                            queues => queuing(queues, 1, 3),
                        };
                        level.set.configure(level.now, response, limit, limit.max(1));
                    }
                    Step::Finish(_) | Step::Cancel(_) => {}
                }
                waiting.retain_mut(|(id, receiver)| {
                    let let_in = is_let_in(receiver);
                    if let_in {
                        executing.push(*id);
                    }
                    !let_in
                });
                let set = &level.set;
                prop_assert_eq!((set.executing, set.waiting), (executing.len(), waiting.len()));
                prop_assert_eq!(set.records.len(), executing.len() + waiting.len());
                let seats: u64 = set.queues.values().map(|queue| queue.seats_in_use).sum();
                prop_assert_eq!(seats, set.queued_seats_in_use);
                let active = set.queues.values().filter(|queue| queue.is_active()).count();
                prop_assert_eq!(active, set.active_queues);
                // Only a request that is alone, or that was dispatched under a larger limit, exceeds the limit.
                prop_assert!(
                    set.seats_in_use <= set.limit.max(widest_before).max(6) || set.executing <= 1,
                    "{} of {}", set.seats_in_use, set.limit
                );
            }
            for (id, _) in waiting {
                if !level.set.cancel(level.now, id) {
                    executing.push(id);
                }
            }
            for id in executing {
                level.finish(id);
            }
            level.pass(100_000);
            level.set.advance(level.now);
            level.assert_empty();
        }
    }
}
