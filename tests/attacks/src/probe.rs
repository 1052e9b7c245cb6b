//! Asks `/livez` while something else happens.

use pintle_harness::{Client, Error};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long between two questions, so that the probe itself costs the server next to nothing.
const PAUSE: Duration = Duration::from_millis(5);

/// A thread that asks `/livez` on a connection of its own, and now and then on a new one.
pub struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Duration, Error>>,
}

impl Probe {
    /// Starts to ask.
    pub fn start(client: Client) -> Probe {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || ask(&client, &stopping));
        Probe { stop, thread }
    }

    /// Ends and gives the slowest answer; a question that is open is waited for.
    ///
    /// # Errors
    /// When an answer was not 200, or there was none.
    pub fn stop(self) -> Result<Duration, Error> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the probe panicked")?
    }
}

fn ask(client: &Client, stop: &AtomicBool) -> Result<Duration, Error> {
    /// New connections need handshakes, which an attack may hold up too.
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
