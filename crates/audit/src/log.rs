//! The log backend: one line per event.
//!
//! A thread writes, so that a blocked disk or pipe does not block a worker. Requests wait for it asynchronously, with
//! a limit: an event whose write takes longer than [`WRITE_TIMEOUT`] counts as failed. The number of waiting writes
//! is bounded.

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

/// Writes events until all senders are dropped.
fn write_all(mut out: Output, mut writes: mpsc::Receiver<Write>, progress: &Mutex<Progress>) {
    #[expect(clippy::disallowed_methods, reason = "no runtime owns this thread")]
    while let Some(write) = writes.blocking_recv() {
        progress.lock().busy_since = Some(Instant::now());
        let mut result = Ok(());
        for event in &write.events {
            result = result.and(out.write(event));
        }
        progress.lock().busy_since = None;
        // The caller may have been dropped.
        drop(write.done.send(result));
    }
}

impl Output {
    fn write(&mut self, event: &[u8]) -> io::Result<()> {
        match self {
            Output::Stdout => io::stdout().lock().write_all(event),
            Output::File(file) => file.write_all(event),
            Output::Rotating(file) => file.write(event),
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
}
