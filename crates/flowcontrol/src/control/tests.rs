use super::*;
use crate::{
    bootstrap::{Requirement, flow_schemas, priority_levels},
    testing::TestRequest,
    work::ResourceStats,
};
use pintle_machinery::{ValueExt, json};
use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A clock that tests set.
#[derive(Default)]
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

struct NoStats;

impl ResourceStatsSource for NoStats {
    fn stats(&self, _: &str, _: &str) -> Option<ResourceStats> {
        None
    }
}

struct World {
    control: Arc<FlowControl>,
    clock: Arc<ManualClock>,
}

fn world(limit: u64) -> World {
    let clock = Arc::new(ManualClock::default());
    let metrics = Arc::new(FlowControlMetrics::new(clock.clone()).unwrap());
    let config = FlowControlConfig {
        clock: clock.clone(),
        server_concurrency_limit: limit,
        stats: Arc::new(NoStats),
        metrics,
    };
    World { control: FlowControl::new(config), clock }
}

fn defaults(objects: fn(Requirement) -> Vec<Value>) -> Vec<Value> {
    [objects(Requirement::Mandatory), objects(Requirement::Suggested)].concat()
}

fn by(user: &str) -> TestRequest {
    TestRequest::resource("get", "", "pods").within("ns").by(user, &["system:authenticated"])
}

type Pending = Pin<Box<dyn Future<Output = Admission>>>;

impl World {
    fn configured(self) -> World {
        self.control.configure(defaults(priority_levels), defaults(flow_schemas));
        self
    }

    fn admit(&self, request: TestRequest) -> Pending {
        let control = self.control.clone();
        Box::pin(async move { control.admit(Arc::new(request), Duration::from_secs(15)).await })
    }

    fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    }

    fn level<'a>(&self, dump: &'a str, name: &str) -> Vec<&'a str> {
        let line = dump.lines().find(|line| line.starts_with(&format!("{name},"))).unwrap_or_default();
        line.split(',').map(str::trim).collect()
    }
}

/// The result of the future, if it is ready.
fn poll(pending: &mut Pending) -> Option<Admission> {
    match pending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(admission) => Some(admission),
        Poll::Pending => None,
    }
}

fn now(mut pending: Pending) -> Admission {
    poll(&mut pending).expect("nobody waits")
}

fn schema_name(admission: &Admission) -> &str {
    &admission.flow.schema.schema.name
}

#[tokio::test]
async fn requests_are_classified_by_the_first_schema_that_matches() {
    let world = world(600).configured();
    let check = |request: TestRequest, schema: &str, level: &str| {
        let admission = now(world.admit(request));
        assert_eq!((schema_name(&admission), &*admission.flow.level.name), (schema, level));
        assert!(admission.seat.is_ok());
    };
    let authenticated = "system:authenticated";
    check(by("admin").by("admin", &["system:masters", authenticated]), "exempt", "exempt");
    check(TestRequest::path("get", "/readyz").by("x", &[authenticated]), "probes", "exempt");
    check(TestRequest::path("get", "/version").by("x", &[authenticated]), "global-default", "global-default");
    let lease = |user: &str, verb: &str| {
        TestRequest::resource(verb, "coordination.k8s.io", "leases")
            .within("kube-system")
            .by(user, &[authenticated])
    };
    check(lease("system:kube-scheduler", "update"), "system-leader-election", "leader-election");
    check(lease("system:kube-scheduler", "list"), "kube-scheduler", "workload-high");
    check(lease("system:serviceaccount:kube-system:x", "get"), "system-leader-election", "leader-election");
    let node = |resource: &str| {
        TestRequest::resource("update", "", resource).by("system:node:a", &["system:nodes", authenticated])
    };
    check(node("nodes").on("status"), "system-node-high", "node-high");
    check(node("events"), "system-nodes", "system");
    check(
        by("x").by("system:serviceaccount:a:b", &["system:serviceaccounts", authenticated]),
        "service-accounts",
        "workload-low",
    );
    check(by("jane"), "global-default", "global-default");
    check(by("").by("system:anonymous", &["system:unauthenticated"]), "global-default", "global-default");
}

#[tokio::test]
async fn without_objects_the_mandatory_ones_are_in_force() {
    let world = world(100);
    let admission = now(world.admit(by("jane")));
    assert_eq!((schema_name(&admission), admission.flow.schema_uid()), ("catch-all", ""));
    let root = by("root").by("root", &["system:masters"]);
    assert_eq!(schema_name(&now(world.admit(root))), "exempt");
    // A user without any group.
    assert_eq!(schema_name(&now(world.admit(by("x").by("x", &[])))), "catch-all");
}

#[tokio::test]
async fn seats_follow_from_shares() {
    let world = world(600).configured();
    let text = |name: &str| {
        let mut registry = prometheus::Registry::new();
        for collector in world.control.metrics.collectors() {
            registry.register(collector).unwrap();
        }
        let _ = &mut registry;
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().find(|line| line.starts_with(name)).map(str::to_owned).unwrap_or_default()
    };
    // 245 shares in total.
    let nominal = "apiserver_flowcontrol_nominal_limit_seats";
    let check = |metric: &str, level: &str, seats: u64| {
        let line = format!("{metric}{{priority_level=\"{level}\"}}");
        assert_eq!(text(&line), format!("{line} {seats}"));
    };
    check(nominal, "workload-low", 245);
    check(nominal, "global-default", 49);
    check(nominal, "catch-all", 13);
    check(nominal, "exempt", 0);
    check("apiserver_flowcontrol_lower_limit_seats", "workload-low", 24);
    check("apiserver_flowcontrol_upper_limit_seats", "global-default", 649);
}

#[tokio::test]
async fn a_flood_fills_its_own_queues_and_is_refused() {
    let world = world(60).configured();
    let mut flood: Vec<Pending> = (0..5000).map(|_| world.admit(by("flood"))).collect();
    let mut served = Vec::new();
    let (mut waiting, mut refused) = (Vec::new(), 0);
    for mut pending in flood.drain(..) {
        match poll(&mut pending).map(|admission| admission.seat) {
            None => waiting.push(pending),
            Some(Ok(seat)) => served.push(seat),
            Some(Err(refusal)) => {
                assert_eq!(refusal.reason, RejectReason::QueueFull);
                refused += 1;
            }
        }
    }
    // A hand has six queues of fifty requests each, whatever the flood.
    assert!(waiting.len() <= 300 && refused > 4500, "{} {refused}", waiting.len());
    // Another flow is next.
    let mut quiet = world.admit(by("quiet"));
    assert!(poll(&mut quiet).is_none());
    world.pass(Duration::from_millis(5));
    let one = served.pop();
    drop(one);
    assert!(poll(&mut quiet).unwrap().seat.is_ok());
    // Dropped requests leave nothing behind.
    drop(waiting);
    drop(served);
    let dump = world.control.dump_priority_levels();
    assert_eq!(&world.level(&dump, "global-default")[1..6], ["0", "true", "false", "0", "0"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused() {
    let world = world(1).configured();
    let mut served = Vec::new();
    let mut waiting = loop {
        let mut pending = world.admit(by("jane"));
        match poll(&mut pending) {
            Some(admission) => served.push(admission.seat.unwrap_or_else(|refusal| panic!("{refusal:?}"))),
            None => break pending,
        }
    };
    tokio::time::advance(Duration::from_millis(14_999)).await;
    assert!(poll(&mut waiting).is_none());
    let refusal = waiting.await.seat.err().unwrap();
    assert_eq!(refusal, Refusal { reason: RejectReason::TimeOut, retry_after: 1 });
}

#[tokio::test]
async fn statuses_that_are_wrong_are_told() {
    let world = world(600);
    let schema = |name: &str, level: &str, status: Value| json!({"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": level}}, "status": status});
    let condition = |condition: DanglingOf| json!({"conditions": [condition.0]});
    let updates = world.control.configure(
        priority_levels(Requirement::Mandatory),
        vec![
            schema("new", "exempt", json!({})),
            schema("lost", "nowhere", json!({})),
            schema("right", "exempt", condition(dangling("exempt", true))),
            schema("wrong", "exempt", condition(dangling("exempt", false))),
        ],
    );
    let told: Vec<_> =
        updates.iter().map(|update| (update.schema.as_str(), update.condition.status.as_str())).collect();
    assert_eq!(told, [("new", "False"), ("lost", "True"), ("wrong", "False")]);
}

struct DanglingOf(Value);

fn dangling(level: &str, is_found: bool) -> DanglingOf {
    let condition = crate::DanglingCondition::new(level, is_found);
    DanglingOf(json!({"type": "Dangling", "status": condition.status, "reason": condition.reason,
        "message": condition.message}))
}

#[tokio::test]
async fn changes_take_effect_and_levels_that_are_gone_are_emptied() {
    let world = world(600).configured();
    let mut levels = defaults(priority_levels);
    levels.push(
        json!({"metadata": {"name": "mine", "uid": "level-1"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}}),
    );
    let mut schemas = defaults(flow_schemas);
    let mut mine = flow_schemas(Requirement::Mandatory).pop().unwrap();
    mine.set("metadata", json!({"name": "mine", "uid": "schema-1"}));
    mine.set("spec.matchingPrecedence", 50);
    mine.set("spec.priorityLevelConfiguration.name", "mine");
    schemas.push(mine);
    world.control.configure(levels.clone(), schemas.clone());
    let admission = now(world.admit(by("jane")));
    assert_eq!((admission.flow.schema_uid(), admission.flow.level_uid()), ("schema-1", "level-1"));
    levels.pop();
    let updates = world.control.configure(levels, schemas);
    assert!(updates.iter().any(|update| update.schema == "mine" && update.condition.status == "True"));
    assert_eq!(schema_name(&now(world.admit(by("jane")))), "global-default");
    let dump = world.control.dump_priority_levels();
    assert_eq!(&world.level(&dump, "mine")[2..6], ["false", "true", "0", "1"]);
    drop(admission);
    world.control.forget_empty_levels();
    assert_eq!(world.level(&world.control.dump_priority_levels(), "mine"), [""]);
}

#[tokio::test]
async fn seats_are_not_held_for_ever() {
    let world = world(600).configured();
    let executing = || {
        let dump = world.control.dump_priority_levels();
        world.level(&dump, "global-default")[5].to_owned()
    };
    let hold = || now(world.admit(by("jane"))).seat.ok().unwrap().hold(Duration::from_secs(60));
    let (one, two) = (hold(), hold());
    assert_eq!(executing(), "2");
    drop(one);
    assert_eq!(executing(), "1");
    world.pass(Duration::from_secs(59));
    world.control.held.release_expired(world.clock.now());
    assert_eq!(executing(), "1");
    world.pass(Duration::from_secs(2));
    world.control.held.release_expired(world.clock.now());
    assert_eq!(executing(), "0");
    drop(two);
    assert_eq!(executing(), "0");
}

#[tokio::test]
async fn requests_and_queues_are_told_of() {
    let world = world(100).configured();
    let mut waiting = Vec::new();
    let mut served = Vec::new();
    while waiting.is_empty() {
        let mut pending = world.admit(by("jane").named("x"));
        match poll(&mut pending) {
            Some(admission) => served.push(admission),
            None => waiting.push(pending),
        }
    }
    let requests = world.control.dump_requests(true);
    let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = requests.lines().skip(1).map(cells).collect();
    assert_eq!(rows.len(), served.len() + 1);
    let row = &rows[0];
    assert_eq!(
        (&row[0..2], &row[3..5]),
        (
            &["global-default".to_owned(), "global-default".to_owned()][..],
            &["0".to_owned(), "jane".to_owned()][..]
        )
    );
    assert_eq!(&row[6..10], ["1", "0", "0s", "0001-01-01T00:00:00Z"]);
    assert_eq!(&row[10..], ["jane", "get", "/apis", "ns", "x", "v1", "pods", ""]);
    assert_eq!(rows[1][3], "-1");
    let queues = world.control.dump_queues();
    assert_eq!(queues.lines().filter(|line| line.starts_with("global-default,")).count(), 128);
    assert_eq!(queues.lines().filter(|line| line.starts_with("leader-election,")).count(), 16);
    assert!(!queues.contains("catch-all"));
}
