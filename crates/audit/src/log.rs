//! The log backend: one line per event.
//!
//! A thread writes, so that a blocked disk or pipe does not block a worker, and by one call what was queued meanwhile.
//! Requests wait for it asynchronously, with a limit: an event whose write takes longer than [`WRITE_TIMEOUT`] counts
//! as failed. The number of waiting writes is bounded.

use crate::rotating_file::{RotatingFile, RotationConfig};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// The time after which a write, and the writes that wait behind it, count as failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest number of queued writes.
const QUEUE: usize = 1024;

/// The size from which no more events are added to those that are written together, in bytes.
const JOINED_BYTES: usize = 64 << 10;

/// The format of events in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// JSON.
    Json,
    /// One line, with less data.
    Legacy,
}

impl LogFormat {
    /// All formats, with the flag values that select them.
    pub const ALL: [(&str, LogFormat); 2] = [("legacy", LogFormat::Legacy), ("json", LogFormat::Json)];
}

/// The configuration of a log.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The file; `-` is the standard output.
    pub path: PathBuf,
    /// The format of events.
    pub format: LogFormat,
    /// The rotation of files; `None` is off.
    pub rotation: Option<RotationConfig>,
}

/// The error of opening a log.
#[derive(Debug, thiserror::Error)]
#[error("opening the audit log {}: {source}", path.display())]
pub struct LogOpenError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// An open log. Each write consists of whole lines; one thread writes.
pub struct Log {
    format: LogFormat,
    queue: mpsc::Sender<Write>,
    progress: Arc<Mutex<Progress>>,
}

/// Events to write, and the channel for the outcome.
struct Write {
    events: Vec<Bytes>,
    done: oneshot::Sender<io::Result<()>>,
}

/// The progress of the writing thread.
#[derive(Default)]
struct Progress {
    /// The start of the write in progress.
    busy_since: Option<Instant>,
}

enum Output {
    Stdout,
    File(File),
    Rotating(RotatingFile),
}

impl Log {
    /// Opens a log, and creates its directory if necessary. Existing contents are kept.
    ///
    /// # Errors
    /// When the log cannot be opened for writing.
    pub fn open(config: &LogConfig) -> Result<Log, LogOpenError> {
        let failed = |source| LogOpenError { path: config.path.clone(), source };
        let out = match (&config.path, &config.rotation) {
            (path, _) if path == Path::new("-") => Output::Stdout,
            (path, None) => Output::File(open(path).map_err(failed)?),
            (path, Some(rotation)) => {
                drop(open(path).map_err(failed)?);
                Output::Rotating(RotatingFile::new(path.clone(), *rotation))
            }
        };
        Log::new(config.format, out).map_err(failed)
    }

    fn new(format: LogFormat, out: Output) -> io::Result<Log> {
        let (queue, writes) = mpsc::channel(QUEUE);
        let progress = Arc::<Mutex<Progress>>::default();
        let noted = progress.clone();
        let writer = move || write_all(out, writes, &noted);
        thread::Builder::new().name("audit-log".to_owned()).spawn(writer)?;
        Ok(Log { format, queue, progress })
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.format == LogFormat::Legacy
    }

    /// Writes events, which end in line feeds.
    ///
    /// Queued events are written even if this future is dropped.
    pub(crate) async fn write(&self, events: Vec<Bytes>) -> io::Result<()> {
        let (done, outcome) = oneshot::channel();
        let busy_since = self.progress.lock().busy_since;
        let deadline = busy_since.unwrap_or_else(Instant::now) + WRITE_TIMEOUT;
        let written = async {
            let gone = || io::Error::other("the thread that writes the log has ended");
            self.queue.send(Write { events, done }).await.map_err(|_| gone())?;
            outcome.await.map_err(|_| gone())?
        };
        match timeout_at(deadline, written).await {
            Ok(written) => written,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the log cannot be written at present")),
        }
    }
}

/// Writes events until all senders are dropped. What is queued is written together.
fn write_all(mut out: Output, mut queue: mpsc::Receiver<Write>, progress: &Mutex<Progress>) {
    let mut joined = Joined::default();
    #[expect(clippy::disallowed_methods, reason = "no runtime owns this thread")]
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        while let Some(write) = next {
            progress.lock().busy_since = Some(Instant::now());
            if !out.has_room(joined.lines.len() + write.length()) {
                joined.write(&mut out);
            }
            match out.has_room(write.length()) {
                true => joined.add(write),
                false => write.one_by_one(&mut out),
            }
            next = match joined.lines.len() < JOINED_BYTES {
                true => queue.try_recv().ok(),
                false => None,
            };
        }
        joined.write(&mut out);
        progress.lock().busy_since = None;
    }
}

impl Write {
    /// The size of the events, in bytes.
    fn length(&self) -> usize {
        self.events.iter().map(Bytes::len).sum()
    }

    /// Writes each event alone. All are attempted, and the first error is the outcome.
    fn one_by_one(self, out: &mut Output) {
        let mut result = Ok(());
        for event in &self.events {
            result = result.and(out.write(event));
        }
        // The caller may have been dropped.
        drop(self.done.send(result));
    }
}

/// The events of several requests, which are written by one call.
#[derive(Default)]
struct Joined {
    lines: Vec<u8>,
    done: Vec<oneshot::Sender<io::Result<()>>>,
}

impl Joined {
    fn add(&mut self, write: Write) {
        write.events.iter().for_each(|event| self.lines.extend_from_slice(event));
        self.done.push(write.done);
    }

    /// Writes what was added. When that fails, it has failed for all: which lines the output has is unknown.
    fn write(&mut self, out: &mut Output) {
        let result = match self.lines.is_empty() {
            true => Ok(()),
            false => out.write(&self.lines),
        };
        for done in self.done.drain(..) {
            let outcome = match &result {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            // The caller may have been dropped.
            drop(done.send(outcome));
        }
        self.lines.clear();
        self.lines.shrink_to(2 * JOINED_BYTES);
    }
}

impl Output {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Output::Stdout => io::stdout().lock().write_all(lines),
            Output::File(file) => file.write_all(lines),
            Output::Rotating(file) => file.write(lines),
        }
    }

    /// Whether this many bytes go where the next line goes.
    fn has_room(&self, length: usize) -> bool {
        match self {
            Output::Stdout | Output::File(_) => true,
            Output::Rotating(file) => file.has_room(length),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A log whose output is a pipe without a reader.
    fn stuck() -> (Log, io::PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        let out = Output::File(File::from(std::os::fd::OwnedFd::from(writer)));
        (Log::new(LogFormat::Json, out).unwrap(), reader)
    }

    #[tokio::test]
    async fn a_log_that_is_stuck_holds_up_no_worker_and_fails_in_time() {
        let (log, mut reader) = stuck();
        let log = Arc::new(log);
        // More than a pipe holds. The single-threaded runtime is not blocked.
        let large = Bytes::from(vec![b'x'; 1 << 20]);
        let (first, event) = (log.clone(), large.clone());
        let first = tokio::spawn(async move { first.write(vec![event]).await });
        while log.progress.lock().busy_since.is_none() {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        // Timers have a resolution of one millisecond.
        let in_time = WRITE_TIMEOUT + Duration::from_millis(2);
        let begun = Instant::now();
        let error = log.write(vec![large.clone()]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() <= in_time);
        assert!(first.await.unwrap().is_err());
        // From then on all writes fail at once, and the queue is bounded.
        for _ in 0..2 * QUEUE {
            assert!(log.write(vec![Bytes::from_static(b"y")]).await.is_err());
        }
        assert!(begun.elapsed() <= in_time);
        tokio::time::resume();
        let reading = thread::spawn(move || {
            let mut read = 0;
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                read += count;
            }
            read
        });
        // The log recovers once the pipe is read.
        while log.write(vec![Bytes::from_static(b"z")]).await.is_err() {
            tokio::task::yield_now().await;
        }
        drop(log);
        let read = reading.join().unwrap();
        assert!(read > 2 << 20, "{read}");
    }

    #[tokio::test]
    async fn a_write_that_fails_has_failed_for_all_that_it_joins() {
        let (log, reader) = stuck();
        let log = Arc::new(log);
        let mut writes = tokio::task::JoinSet::new();
        // More than a pipe holds: the others are queued meanwhile.
        for size in [1 << 20, 10, 10, 10] {
            let log = log.clone();
            writes.spawn(async move { log.write(vec![Bytes::from(vec![b'x'; size])]).await });
        }
        while log.queue.capacity() > QUEUE - 3 {
            tokio::task::yield_now().await;
        }
        drop(reader);
        let outcomes = writes.join_all().await;
        let kinds: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap_err().kind()).collect();
        assert_eq!(kinds, [io::ErrorKind::BrokenPipe; 4]);
    }

    #[tokio::test]
    async fn events_that_are_written_together_keep_to_the_size_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let rotation = RotationConfig { max_size: 100, max_age_days: 0, max_backups: 0, compress: false };
        let config = LogConfig {
            path: dir.path().join("audit.log"),
            format: LogFormat::Json,
            rotation: Some(rotation),
        };
        let log = Arc::new(Log::open(&config).unwrap());
        let mut writes = tokio::task::JoinSet::new();
        for number in 0..50 {
            let (log, line) = (log.clone(), format!("{number:029}\n"));
            writes.spawn(async move { log.write(vec![Bytes::from(line)]).await });
        }
        assert!(writes.join_all().await.iter().all(Result::is_ok));
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(text.len() <= 100, "{}", text.len());
            numbers.extend(text.lines().map(|line| line.parse::<usize>().unwrap()));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    }
}
