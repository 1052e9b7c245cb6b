//! The log backend: one line per event.
//!
//! A thread writes, so that a blocked disk or pipe does not block a worker. Requests wait for it asynchronously, with
//! a limit: an event whose write takes longer than [`WRITE_TIMEOUT`] counts as failed. The number of queued writes
//! is bounded.

mod queue;

use crate::rotating_file::{RotatingFile, RotationConfig};
use bytes::Bytes;
use queue::{Queue, Receiver, Write};
use std::{
    collections::VecDeque,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

/// The time after which a write, and the writes that wait behind it, count as failed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest size of several queued writes that are done as one, in bytes.
const MAX_JOINED: usize = 1 << 16;

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
    queue: Arc<Queue>,
}

/// A write that is queued.
pub(crate) struct Queued {
    deadline: Instant,
    outcome: oneshot::Receiver<io::Result<()>>,
}

impl Queued {
    /// Waits until the write is done.
    pub(crate) async fn written(self) -> io::Result<()> {
        match timeout_at(self.deadline, self.outcome).await {
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(late()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes the log has ended")
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the log cannot be written at present")
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
        let queue = Arc::new(Queue::new());
        let receiver = Receiver(queue.clone());
        let writer = move || write_all(out, &receiver);
        thread::Builder::new().name("audit-log".to_owned()).spawn(writer)?;
        Ok(Log { format, queue })
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.format == LogFormat::Legacy
    }

    /// Writes events, which end in line feeds.
    ///
    /// Queued events are written even if this future is dropped.
    pub(crate) async fn write(&self, events: Vec<Bytes>) -> io::Result<()> {
        let deadline = self.deadline();
        let slot =
            timeout_at(deadline, self.queue.slot(&events)).await.map_err(|_| late())?.ok_or_else(gone)?;
        let outcome = self.queue.push(slot, events, true);
        self.rouse_soon();
        Queued { deadline, outcome }.written().await
    }

    /// Queues events, which end in line feeds, to be written with the next [`Log::write`] or some milliseconds later, so
    /// that the thread is not woken for them. `None` when the queue is full.
    pub(crate) fn write_later(&self, events: Vec<Bytes>) -> Option<Queued> {
        let deadline = self.deadline();
        let slot = self.queue.try_slot(&events)?;
        let outcome = self.queue.push(slot, events, false);
        Some(Queued { deadline, outcome })
    }

    /// Wakes the thread after the tasks that are ready on this worker: they may queue events too, and it is woken once
    /// for all.
    fn rouse_soon(&self) {
        if self.queue.claim_rousing() {
            let queue = self.queue.clone();
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                queue.rouse();
            });
        }
    }

    fn deadline(&self) -> Instant {
        self.queue.busy_since().unwrap_or_else(Instant::now) + WRITE_TIMEOUT
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Writes events until the log is dropped.
fn write_all(mut out: Output, receiver: &Receiver) {
    let Receiver(queue) = receiver;
    let mut writes = VecDeque::new();
    while queue.take(&mut writes) {
        while !writes.is_empty() {
            queue.begin_write();
            let together = out.fitting(&writes);
            let result = match together {
                1 => out.write_each(writes.front().iter().flat_map(|write| &write.events)),
                _ => out.write(&joined(writes.iter().take(together))),
            };
            for write in writes.drain(..together) {
                let result =
                    result.as_ref().copied().map_err(|error| io::Error::new(error.kind(), error.to_string()));
                // The caller may have been dropped.
                drop(write.done.send(result));
            }
        }
    }
}

/// The events of several writes.
fn joined<'a>(writes: impl Iterator<Item = &'a Write>) -> Vec<u8> {
    let mut events = Vec::with_capacity(MAX_JOINED);
    for event in writes.flat_map(|write| &write.events) {
        events.extend_from_slice(event);
    }
    events
}

impl Output {
    /// The number of writes that are done as one; at least one, unless there are none. They share their outcome.
    fn fitting(&self, writes: &VecDeque<Write>) -> usize {
        let room = match self {
            Output::Stdout | Output::File(_) => MAX_JOINED,
            Output::Rotating(file) => file.room().min(MAX_JOINED),
        };
        let mut size = 0;
        let fits = |write: &&Write| {
            size += write.size();
            size <= room
        };
        writes.iter().take_while(fits).count().max(writes.len().min(1))
    }

    /// Writes events one by one, also after one that fails; the first failure is the outcome.
    fn write_each<'a>(&mut self, events: impl Iterator<Item = &'a Bytes>) -> io::Result<()> {
        let mut outcome = Ok(());
        for event in events {
            outcome = outcome.and(self.write(event));
        }
        outcome
    }

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
    use std::{
        io::{BufRead, Read},
        task::{Context, Waker},
    };

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
        while log.queue.busy_since().is_none() {
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
        for _ in 0..2 * queue::CAPACITY {
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
    async fn large_events_wait_in_a_bounded_room() {
        static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];
        let (log, reader) = stuck();
        let waiting: Vec<_> =
            (0..queue::CAPACITY).map_while(|_| log.write_later(vec![Bytes::from_static(&LARGE)])).collect();
        assert!((256..300).contains(&waiting.len()), "{}", waiting.len());
        drop(reader);
    }

    /// A log whose output is read.
    fn piped() -> (Log, io::BufReader<io::PipeReader>) {
        let (log, reader) = stuck();
        (log, io::BufReader::new(reader))
    }

    #[tokio::test]
    async fn later_writes_precede_the_next_write_and_need_none() {
        let (log, mut reader) = piped();
        for round in 0..100 {
            let later = log.write_later(vec![Bytes::from(format!("{round} later\n"))]).unwrap();
            if round % 3 > 0 {
                log.write(vec![Bytes::from(format!("{round} now\n"))]).await.unwrap();
            }
            later.written().await.unwrap();
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert_eq!(line, format!("{round} later\n"));
            if round % 3 > 0 {
                line.clear();
                reader.read_line(&mut line).unwrap();
                assert_eq!(line, format!("{round} now\n"));
            }
        }
    }

    #[tokio::test]
    async fn any_write_wakes_a_thread_that_sleeps() {
        let (log, _reader) = piped();
        let asleep = async || {
            while !log.queue.is_asleep() {
                tokio::task::yield_now().await;
            }
        };
        asleep().await;
        log.write(vec![Bytes::from_static(b"now\n")]).await.unwrap();
        asleep().await;
        log.write_later(vec![Bytes::from_static(b"later\n")]).unwrap().written().await.unwrap();
    }

    #[tokio::test]
    async fn later_writes_of_a_stuck_log_fail_in_time_and_are_bounded() {
        let (log, reader) = stuck();
        let first = log.write_later(vec![Bytes::from(vec![b'x'; 1 << 20])]).unwrap();
        while log.queue.busy_since().is_none() {
            tokio::task::yield_now().await;
        }
        let queued: Vec<Queued> =
            std::iter::from_fn(|| log.write_later(vec![Bytes::from_static(b"y")])).collect();
        assert_eq!(queued.len(), queue::CAPACITY - 1);
        tokio::time::pause();
        let begun = Instant::now();
        assert_eq!(first.written().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        for write in queued {
            assert_eq!(write.written().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        assert!(begun.elapsed() <= WRITE_TIMEOUT + Duration::from_millis(2));
        // The thread ends with the pipe.
        drop(reader);
    }

    #[tokio::test]
    async fn queued_writes_are_written_when_the_log_is_dropped() {
        let (log, reader) = piped();
        drop(log.write_later(vec![Bytes::from_static(b"a\n")]).unwrap());
        drop(log.write_later(vec![Bytes::from_static(b"b\n")]).unwrap());
        drop(log);
        let lines: Vec<String> = reader.lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["a", "b"]);
    }

    #[tokio::test]
    async fn a_write_whose_caller_leaves_at_once_is_done() {
        let (log, mut reader) = piped();
        let mut write = Box::pin(log.write(vec![Bytes::from_static(b"left\n")]));
        // The thread may have been awake, and done already.
        drop(write.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        drop(write);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "left\n");
    }

    #[tokio::test]
    async fn joined_writes_obey_the_size_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let rotation = RotationConfig { max_size: 1000, max_age_days: 0, max_backups: 0, compress: false };
        let log = Log::open(&LogConfig { path, format: LogFormat::Json, rotation: Some(rotation) }).unwrap();
        let line = |number: usize| format!("{number:0>4} {}\n", "x".repeat(50 + number));
        // The thread naps, and takes many at once; the last one is larger than a file.
        let queued: Vec<Queued> =
            (0..200).map(|number| log.write_later(vec![Bytes::from(line(number))]).unwrap()).collect();
        let too_large = log.write_later(vec![Bytes::from(line(1000))]).unwrap();
        for write in queued {
            write.written().await.unwrap();
        }
        assert_eq!(too_large.written().await.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        drop(log);
        let mut files: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        files.sort();
        assert!(files.iter().all(|file| file.len() <= 1000));
        assert_eq!(files.concat(), (0..200).map(line).collect::<String>());
        // A file ends only where the next line does not fit.
        for pair in files.windows(2) {
            assert!(pair[0].len() + pair[1].lines().next().unwrap().len() + 1 > 1000);
        }
    }
}
