//! Tests a load of more requests than the server has seats.

use crate::Result;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{OTHER_TOKEN, Server, wait_for};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// One of the largest responses that every user may request.
const LARGE: &str = "/openapi/v2";

/// The number of measurements of the flood's cost, and the least number of responses between them: to the flood, and of
/// each kind to another user.
const ROUNDS: u64 = 4;
const ROUND: u64 = 300;
const ROUND_OF_OTHERS: usize = 4;

#[test]
fn requests_above_the_limit_are_told_to_come_again_and_masters_are_not() -> Result {
    let config = config()?.flag("--max-requests-inflight=1").flag("--enable-priority-and-fairness=false");
    let server = Server::start(config)?;
    let stranger = server.client()?.with_token(OTHER_TOKEN);
    let stop = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..8)
        .map(|_| {
            let (stranger, stop) = (stranger.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let answer = stranger.get(LARGE).map(|response| response.status);
                    assert!(matches!(answer, Ok(200 | 429)), "{answer:?}");
                }
            })
        })
        .collect();
    let refused = wait_for("a refusal", PATIENCE, || {
        let response = stranger.get(LARGE).ok()?;
        (response.status == 429).then_some(response)
    });
    let master = server.client()?;
    let masters: Vec<u16> =
        (0..20).filter_map(|_| master.get("/version").ok()).map(|response| response.status).collect();
    stop.store(true, Ordering::Relaxed);
    for other in others {
        other.join().map_err(|_| "a request was answered with something else")?;
    }
    let refused = refused?;
    assert_eq!(refused.header("retry-after"), Some("1"));
    let text = refused.text();
    assert!(text.contains("Too many requests, please try again later."), "{text}");
    assert_eq!(masters, [200; 20]);
    assert_eq!(stranger.get(LARGE)?.status, 200, "the limit is of requests in flight only");
    Ok(())
}

/// Many clients of one user that send requests as fast as they can on their connections, even when they are refused.
#[test]
fn a_flood_by_one_user_leaves_room_for_others_and_costs_no_memory() -> Result {
    let few = ["--max-requests-inflight=20", "--max-mutating-requests-inflight=5"];
    let server = Server::start(few.iter().fold(config()?, |config, flag| config.flag(*flag)))?;
    let flooding = server.client()?.with_token(OTHER_TOKEN);
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let flood: Vec<_> = (0..48)
        .map(|_| {
            let (flooding, stop, answered) = (flooding.clone(), Arc::clone(&stop), Arc::clone(&answered));
            thread::spawn(move || {
                let mut connection = flooding.connect().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let answer = connection.request("GET", LARGE, &[], b"").map(|response| response.status);
                    assert!(matches!(answer, Ok(200 | 429)), "{answer:?}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let master = server.client()?;
    let level = || {
        let dump = master.get("/debug/api_priority_and_fairness/dump_priority_levels")?.text();
        let row = dump.lines().find(|line| line.starts_with("global-default,")).unwrap_or_default();
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        Result::Ok((cells[4].parse::<u64>()?, cells[5].parse::<u64>()?))
    };
    wait_for("requests that wait", PATIENCE, || level().ok().filter(|(waiting, _)| *waiting > 0))?;
    let mut quiet = server.anonymous_client()?.connect()?;
    let mut ask = |path: &str| quiet.request("GET", path, &[], b"").map(|response| response.status);
    let mut memory = Vec::new();
    for round in 1..=ROUNDS {
        // Other users are served during the whole flood.
        let mut asked = 0;
        while asked < ROUND_OF_OTHERS || answered.load(Ordering::Relaxed) < round * ROUND {
            let others = [ask("/version")?, ask("/readyz")?, ask("/healthz")?];
            assert_eq!(others, [200; 3], "round {round}");
            asked += 1;
        }
        memory.push(server.memory_kb("VmRSS")?);
        let (waiting, executing) = level()?;
        assert!(waiting <= 300 && executing <= 30, "{waiting} wait, {executing} are served");
    }
    stop.store(true, Ordering::Relaxed);
    for flooding in flood {
        flooding.join().map_err(|_| "a request of the flood was answered with something else")?;
    }
    // The memory of the flood is needed from its beginning. Its later growth must stay below a twentieth of the bytes
    // of its responses: a leak of each request would exceed that, and memory that the allocator keeps free does not.
    let (first, last) = (memory[0], memory[memory.len() - 1]);
    let answers = master.get(LARGE)?.body.len() as u64 / 1024 * ROUND * (ROUNDS - 1);
    assert!(last < first + answers / 20, "{memory:?} kB with {answers} kB of answers");
    assert_eq!(master.get("/version")?.status, 200);
    Ok(())
}
