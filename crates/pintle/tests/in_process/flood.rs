//! Tests a flood of requests from one client: the latency of other clients hardly changes.
//!
//! Where time counts it is simulated: requests take some milliseconds of it, and the tests do not wait for them.

use crate::overload::ByName;
use bytes::Bytes;
use http::Request;
use parking_lot::{Mutex, RwLock};
use pintle_apiserver::{
    base::{body::RequestBody, handler::Handler, request::Request as ApiRequest, response::text},
    filters::{ChainConfig, chain},
    metrics::Metrics,
};
use pintle_auth::authz::AlwaysAllow;
use pintle_flowcontrol::{
    Clock, FlowControl, FlowControlConfig, FlowControlMetrics, ResourceStats, ResourceStatsSource,
    bootstrap::{Requirement, flow_schemas, priority_levels},
};
use pintle_offload::leave_worker;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// The execution time of a request.
const COST: Duration = Duration::from_millis(10);
/// How long a flooding client waits after a 429, whose `Retry-After` is a second.
const RETRY: Duration = Duration::from_millis(10);

struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

struct NoStats;

impl ResourceStatsSource for NoStats {
    fn stats(&self, _: &str, _: &str) -> Option<ResourceStats> {
        None
    }
}

/// A chain with flow control, and the maximum of concurrently served requests.
struct World {
    handler: Handler,
    flow_control: Arc<FlowControl>,
    most: Arc<AtomicUsize>,
}

fn world(limit: u64) -> World {
    let (serving, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let most_seen = most.clone();
    let handler = Handler::new(move |request: ApiRequest| {
        let (serving, most) = (serving.clone(), most_seen.clone());
        async move {
            let now = serving.fetch_add(1, Ordering::SeqCst) + 1;
            if request.uri().path().starts_with("/api/") {
                most.fetch_max(now, Ordering::SeqCst);
                sleep(COST).await;
            }
            serving.fetch_sub(1, Ordering::SeqCst);
            text(200, "done")
        }
    });
    let clock = Arc::new(TestClock(Instant::now()));
    let flow_control = FlowControl::new(FlowControlConfig {
        clock: clock.clone(),
        server_concurrency_limit: limit,
        stats: Arc::new(NoStats),
        metrics: Arc::new(FlowControlMetrics::new(clock).unwrap()),
    });
    let all = |objects: fn(Requirement) -> Vec<_>| {
        [objects(Requirement::Mandatory), objects(Requirement::Suggested)].concat()
    };
    flow_control.configure(all(priority_levels), all(flow_schemas));
    let metrics = Arc::new(Metrics::new().unwrap());
    let mut config = ChainConfig::new(metrics, Arc::new(ByName), Arc::new(AlwaysAllow));
    config.flow_control = Some(flow_control.clone());
    config.max_long_running = 1000;
    World { handler: chain(config, handler), flow_control, most }
}

/// Sends a request; returns the status and the latency.
async fn ask(handler: &Handler, user: &str, path: &str) -> (u16, Duration) {
    let request = Request::builder()
        .uri(path)
        .header("Authorization", format!("Bearer {user}"))
        .body(RequestBody::Bytes(Bytes::new()))
        .unwrap();
    let begun = Instant::now();
    let response = handler.call(request).await;
    (response.status().as_u16(), begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_flood_delays_others_by_less_than_their_own_time() {
    let world = world(120);
    let pods = "/api/v1/namespaces/default/pods";
    let (status, unloaded) = ask(&world.handler, "quiet", pods).await;
    assert_eq!((status, unloaded), (200, COST));
    let stop = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicUsize::new(0));
    let flood: Vec<_> = (0..1000)
        .map(|index| {
            let (handler, stop, refused) = (world.handler.clone(), stop.clone(), refused.clone());
            tokio::spawn(async move {
                // The clients start at different times.
                sleep(Duration::from_micros(index * 17)).await;
                while !stop.load(Ordering::SeqCst) {
                    match ask(&handler, "flood", pods).await.0 {
                        429 => {
                            refused.fetch_add(1, Ordering::SeqCst);
                            sleep(RETRY).await;
                        }
                        status => assert_eq!(status, 200),
                    }
                }
            })
        })
        .collect();
    // Until the flood has filled its queues.
    while refused.load(Ordering::SeqCst) < 1000 {
        sleep(Duration::from_millis(1)).await;
    }
    let mut latencies = Vec::new();
    for turn in 0..40 {
        let (status, latency) = ask(&world.handler, "quiet", pods).await;
        assert_eq!(status, 200);
        latencies.push(latency);
        // Health endpoints respond at once, for every client.
        assert_eq!(ask(&world.handler, "flood", "/readyz").await, (200, Duration::ZERO));
        assert_eq!(ask(&world.handler, "root", "/version").await, (200, Duration::ZERO));
        sleep(Duration::from_micros(turn * 370)).await;
    }
    let dump = world.flow_control.dump_priority_levels();
    stop.store(true, Ordering::SeqCst);
    for flooding in flood {
        flooding.await.unwrap();
    }
    assert!(latencies.iter().all(|latency| *latency <= 2 * unloaded), "{latencies:?}");
    // Six queues of fifty places are a flow's limit, and its level has twelve seats while no other level needs any.
    let row = dump.lines().find(|line| line.starts_with("global-default,")).unwrap();
    let cells: Vec<usize> = row.split(',').skip(1).filter_map(|cell| cell.trim().parse().ok()).collect();
    let (active, waiting) = (cells[0], cells[1]);
    assert!(active <= 7 && (250..=300).contains(&waiting), "{dump}");
    assert_eq!(world.most.load(Ordering::SeqCst), 12);
    // No request is left.
    let dump = world.flow_control.dump_priority_levels();
    let row = dump.lines().find(|line| line.starts_with("global-default,")).unwrap();
    assert!(row.split(',').map(str::trim).collect::<Vec<_>>()[2..6] == ["true", "false", "0", "0"], "{dump}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_when_to_come_again_and_what_it_was_taken_for() {
    let world = world(120);
    let begin = || {
        let request = Request::builder()
            .uri("/api/v1/pods")
            .header("Authorization", "Bearer flood")
            .body(RequestBody::Bytes(Bytes::new()))
            .unwrap();
        let handler = world.handler.clone();
        tokio::spawn(async move { handler.call(request).await })
    };
    let tasks: Vec<_> = (0..400).map(|_| begin()).collect();
    let mut refusals = Vec::new();
    for task in tasks {
        let response = task.await.unwrap();
        match response.status().as_u16() {
            200 => {}
            _ => refusals.push(response),
        }
    }
    // Twelve are executed at once, three hundred are queued.
    assert_eq!(refusals.len(), 400 - 12 - 300);
    let refusal = refusals.pop().unwrap();
    assert_eq!(refusal.status(), 429);
    let header = |name: &str| refusal.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("retry-after").as_deref(), Some("1"));
    assert_eq!(header("content-type").as_deref(), Some("text/plain; charset=utf-8"));
    assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"));
    assert!(header("x-kubernetes-pf-flowschema-uid").is_some());
    assert!(header("x-kubernetes-pf-prioritylevel-uid").is_some());
}

/// Requests with much work have few threads, on which users take turns.
#[test]
fn many_large_requests_of_one_user_delay_another_by_few_of_them() {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let [arrived, running] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    // The paths in the order of the requests' ends, with the threads.
    let ended = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(RwLock::new(()));
    let handler = {
        let shared = (arrived.clone(), running.clone(), ended.clone(), gate.clone());
        Handler::new(move |request: ApiRequest| {
            let (arrived, running, ended, gate) = shared.clone();
            async move {
                arrived.fetch_add(1, Ordering::SeqCst);
                leave_worker().await;
                running.fetch_add(1, Ordering::SeqCst);
                // Stands for long work.
                drop(gate.try_read_for(Duration::from_secs(30)));
                ended.lock().push((request.uri().path().to_owned(), std::thread::current().id()));
                text(200, "done")
            }
        })
    };
    let metrics = Arc::new(Metrics::new().unwrap());
    let handler = chain(ChainConfig::new(metrics, Arc::new(ByName), Arc::new(AlwaysAllow)), handler);
    let begin = |user: &'static str| {
        let handler = handler.clone();
        runtime.spawn(async move { ask(&handler, user, &format!("/api/v1/namespaces/{user}/pods")).await.0 })
    };
    let wait_for = |count: &AtomicUsize, least: usize| {
        let begun = std::time::Instant::now();
        while count.load(Ordering::SeqCst) < least {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
    };
    let closed = gate.write();
    let mut flood: Vec<_> = (0..threads).map(|_| begin("flood")).collect();
    wait_for(&running, threads);
    flood.extend((0..8 * threads).map(|_| begin("flood")));
    wait_for(&arrived, 9 * threads);
    let quiet = begin("quiet");
    wait_for(&arrived, 9 * threads + 1);
    drop(closed);
    for request in flood.into_iter().chain([quiet]) {
        assert_eq!(runtime.block_on(request).unwrap(), 200);
    }
    let ended = ended.lock();
    let (quiet, thread) = ended.iter().enumerate().find(|(_, (path, _))| path.contains("quiet")).unwrap();
    let before = ended.iter().take(quiet).filter(|(_, other)| *other == thread.1).count();
    assert!(before <= 2, "it waited for the one that ran, and for {} more", before - 1);
}

/// A write that has started continues without its client; a queued one leaves the queue.
#[tokio::test(start_paused = true)]
async fn writes_whose_clients_left_wait_no_more() {
    let world = world(120);
    let begin = || {
        let request = Request::builder()
            .method("POST")
            .uri("/api/v1/namespaces/default/pods")
            .header("Authorization", "Bearer flood")
            .body(RequestBody::Bytes(Bytes::new()))
            .unwrap();
        let handler = world.handler.clone();
        tokio::spawn(async move { handler.call(request).await })
    };
    let level = || {
        let dump = world.flow_control.dump_priority_levels();
        let row = dump.lines().find(|line| line.starts_with("global-default,")).unwrap();
        let cells: Vec<String> = row.split(',').map(|cell| cell.trim().to_owned()).collect();
        (cells[4].clone(), cells[5].clone())
    };
    let tasks: Vec<_> = (0..112).map(|_| begin()).collect();
    while level() != ("100".to_owned(), "12".to_owned()) {
        tokio::task::yield_now().await;
    }
    tasks.iter().for_each(|task| task.abort());
    while level().0 != "0" {
        tokio::task::yield_now().await;
    }
    assert_eq!(level().1, "12");
    assert_eq!(world.most.load(Ordering::SeqCst), 12);
}
