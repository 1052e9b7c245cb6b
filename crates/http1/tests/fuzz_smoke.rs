//! Runs the fuzz target of requests on fixed sequences of pieces, and on mutations of requests.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../../fuzz/src/http1_requests.rs"]
mod http1_requests;
#[path = "../../../fuzz/src/random.rs"]
mod random;

use random::Random;

const ROUNDS: u32 = 200_000;

/// The number of request lines, with which the pieces begin.
const LINES: usize = 7;
/// The position of the first piece of a body; they end the pieces.
const BODIES: usize = 32;

const PIECES: [&[u8]; 38] = [
    b"GET / HTTP/1.1\r\n",
    b"POST /a?b=%20 HTTP/1.1\r\n",
    b"PUT /a HTTP/1.0\r\n",
    b"GET http://h/%zz HTTP/1.1\r\n",
    b"GET /\"<\xff> HTTP/1.2\n",
    b"OPTIONS * HTTP/1.1\r\n",
    b"CONNECT h:1 HTTP/1.1\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b",",
    b"Host: x\r\n",
    b"host:\r\n",
    b"Content-Length: 3\r\n",
    b"content-length:3 \r\n",
    b"Content-Length: +3\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length : 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"transfer-encoding:\tChunked\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"Expect: 100-continue\r\n",
    b"Trailer: Content-Length\r\n",
    b"X: y\r\n z\r\n",
    b"X: \xe9\r\n",
    b"X\xe9: y\r\n",
    b"X:\0\r\n",
    b"3\r\nabc\r\n",
    b"3;x=\"y\"\r\nabc\r\n",
    b"0\r\n\r\n",
    b"0\r\nX: y\r\n\r\n",
    b"abc",
    b"10000000000000000\r\n",
];

#[test]
fn requests_hold() {
    let mut random = Random::default();
    let mut requests = 0;
    for _ in 0..ROUNDS {
        let mut data = Vec::new();
        for _ in 0..=random.below(3) {
            data.extend_from_slice(PIECES[random.below(LINES)]);
            if random.below(4) > 0 {
                data.extend_from_slice(b"Host: x\r\n");
            }
            for _ in 0..random.below(4) {
                data.extend_from_slice(PIECES[LINES + random.below(PIECES.len() - LINES)]);
            }
            if random.below(8) > 0 {
                data.extend_from_slice(b"\r\n");
            }
            for _ in 0..random.below(3) {
                data.extend_from_slice(PIECES[BODIES + random.below(PIECES.len() - BODIES)]);
            }
        }
        for _ in 0..random.below(3) {
            let at = random.below(data.len() + 1);
            match random.below(3) {
                0 => data.insert(at, random.below(256) as u8),
                1 if at < data.len() => data[at] ^= 1 << random.below(8),
                _ => drop(data.drain(at..(at + random.below(5)).min(data.len()))),
            }
        }
        requests += http1_requests::requests(&data);
    }
    assert!(requests > ROUNDS as usize / 10, "{requests} of {ROUNDS}");
}
