//! Writes the server's log without blocking the logging threads.
//!
//! A thread writes the lines. A pipe without a reader blocks that thread alone: lines that do not fit its queue are
//! dropped and counted.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tracing_subscriber::fmt::MakeWriter;

/// The capacity of the queue, in lines.
const QUEUE: usize = 8192;
/// The length limit of a line, in bytes; longer lines are truncated.
const MAX_LINE: usize = 8 << 10;
/// How long flushing the queue may take when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The sending end of the queue; clones share one queue.
#[derive(Clone)]
pub(crate) struct LogWriter {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// Flushes the queue when it is dropped.
pub(crate) struct Flush {
    writer: Option<JoinHandle<()>>,
    /// An empty line stops the thread.
    lines: SyncSender<Vec<u8>>,
}

impl LogWriter {
    /// Starts the writing thread.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<(LogWriter, Flush)> {
        let (lines, queue) = sync_channel(QUEUE);
        let dropped = Arc::<AtomicU64>::default();
        let counter = dropped.clone();
        let thread = thread::Builder::new().name("log".to_owned());
        let writer = Some(thread.spawn(move || write_all(out, &queue, &counter))?);
        Ok((LogWriter { lines: lines.clone(), dropped }, Flush { writer, lines }))
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&'a self) -> LogWriter {
        self.clone()
    }
}

impl Write for LogWriter {
    /// Enqueues a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut cut = line.get(..MAX_LINE).unwrap_or(line).to_vec();
        if cut.len() < line.len() {
            cut.extend_from_slice(b" [...]\n");
        }
        if let Err(TrySendError::Full(_)) = self.lines.try_send(cut) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(mut out: impl Write, queue: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    for line in queue {
        if line.is_empty() {
            return;
        }
        // A failure to log cannot be logged.
        drop(out.write_all(&line));
        let dropped = dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            drop(writeln!(out, "{dropped} lines of the log were dropped: nobody read them"));
        }
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let mut is_ending = false;
        // A blocked thread is abandoned.
        while Instant::now() < deadline {
            is_ending = is_ending || self.lines.try_send(Vec::new()).is_ok();
            match &self.writer {
                Some(writer) if !writer.is_finished() => thread::park_timeout(Duration::from_millis(1)),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_log_that_nobody_reads_loses_lines_and_holds_nobody_up() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let (mut log, flush) = LogWriter::start(pipe).unwrap();
        let line = format!("{}\n", "x".repeat(1000));
        for _ in 0..10 * QUEUE {
            log.write_all(line.as_bytes()).unwrap();
        }
        let begun = Instant::now();
        drop(flush);
        assert!(begun.elapsed() < 10 * FLUSH_TIMEOUT);
        drop(log);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let told = text.lines().filter(|line| line.ends_with("were dropped: nobody read them"));
        let dropped: usize = told.map(|line| line.split(' ').next().unwrap().parse::<usize>().unwrap()).sum();
        let written = text.lines().filter(|line| line.starts_with('x')).count();
        assert_eq!(dropped + written, 10 * QUEUE);
        assert!(dropped > 8 * QUEUE, "{dropped}");
    }

    #[test]
    fn what_is_in_the_queue_is_written_at_the_end() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let (mut log, flush) = LogWriter::start(pipe).unwrap();
        log.write_all(b"first\n").unwrap();
        log.write_all(&vec![b'y'; 2 * MAX_LINE]).unwrap();
        drop(flush);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("first\nyyyy") && text.ends_with("y [...]\n"));
    }
}
