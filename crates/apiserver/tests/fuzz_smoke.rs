//! Runs the fuzz target of request infos on a fixed sequence of requests that are composed of meaningful pieces.

#![allow(clippy::indexing_slicing, reason = "tests")]

#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/request_infos.rs"]
mod request_infos;

use random::Random;

const ROUNDS: u32 = 100_000;

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];

const PIECES: [&str; 28] = [
    "/",
    "/api",
    "/apis",
    "/v1",
    "/apps",
    "/namespaces",
    "/a",
    "/pods",
    "/watch",
    "/proxy",
    "/status",
    "/finalize",
    "/log",
    "/exec",
    "//",
    "/..",
    "/%2f",
    "/é",
    "api",
    "?",
    "watch=1",
    "&",
    "watch=false",
    "fieldSelector=metadata.name%3Dx",
    "fieldSelector=metadata.name=a/b",
    "fieldSelector=,=",
    "%",
    "+",
];

#[test]
fn request_infos_hold() {
    let mut random = Random::default();
    for _ in 0..ROUNDS {
        let mut request = format!("{} ", METHODS[random.below(METHODS.len())]);
        if random.below(4) > 0 {
            request.push_str(["/api/v1", "/apis/apps/v1", "/apis/apps"][random.below(3)]);
        }
        for _ in 0..random.below(9) {
            request.push_str(PIECES[random.below(PIECES.len())]);
        }
        request_infos::request_info(request.as_bytes());
    }
    for odd in ["", " ", "GET", "GET ", "\u{0} /api", "GET /api/v1/watch", "GET /apis///"] {
        request_infos::request_info(odd.as_bytes());
    }
}
