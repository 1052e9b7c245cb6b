//! Measures the response times of `/livez` during an attack.

use pintle_harness::{Client, Error};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The pause between two requests, so that the cost of the probe itself is negligible.
const PAUSE: Duration = Duration::from_millis(5);

/// A thread that requests `/livez` on a connection of its own, and on a new one from time to time.
pub struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Duration, Error>>,
}

impl Probe {
    /// Starts the probe.
    pub fn start(client: Client) -> Probe {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || ask(&client, &stopping));
        Probe { stop, thread }
    }

    /// Stops the probe after its current request, and returns the slowest response time.
    ///
    /// # Errors
    /// When a response was not 200, or there was none.
    pub fn stop(self) -> Result<Duration, Error> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the probe panicked")?
    }
}

fn ask(client: &Client, stop: &AtomicBool) -> Result<Duration, Error> {
    /// The number of requests on a connection: new connections need handshakes, which an attack may delay, too.
    const QUESTIONS_A_CONNECTION: usize = 20;
    let mut slowest = Duration::ZERO;
    loop {
        let mut asked = Instant::now();
        let mut connection = client.connect()?;
        for _ in 0..QUESTIONS_A_CONNECTION {
            let answer = connection.request("GET", "/livez", &[], b"")?;
            if answer.status != 200 {
                return Err(format!("/livez: {} {}", answer.status, answer.text()).into());
            }
            slowest = slowest.max(asked.elapsed());
            if stop.load(Ordering::Relaxed) {
                return Ok(slowest);
            }
            #[expect(clippy::disallowed_methods, reason = "a thread of the probe's own")]
            thread::sleep(PAUSE);
            asked = Instant::now();
        }
    }
}
