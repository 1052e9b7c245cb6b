//! More requests than the server was told to take.

use crate::Result;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{OTHER_TOKEN, Server, wait_for};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// One of the largest answers that every user may have.
const LARGE: &str = "/openapi/v2";

#[test]
fn requests_above_the_limit_are_told_to_come_again_and_masters_are_not() -> Result {
    let server = Server::start(config()?.flag("--max-requests-inflight=1"))?;
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
