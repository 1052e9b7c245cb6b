//! Runs the fuzz target of request infos on requests put together of pieces that mean something, the same ones every time.

#![allow(clippy::indexing_slicing, reason = "tests")]

#[path = "../../../fuzz/src/request_infos.rs"]
mod request_infos;

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

/// A small generator of the xorshift kind: the same inputs in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

#[test]
fn request_infos_hold() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
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
