//! Writes the server's log without blocking the logging threads.
//!
//! A thread writes the lines. A pipe without a reader blocks that thread alone: lines that do not fit its queue are
//! dropped and counted.

use std::{
    io::{self, BufWriter, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The capacity of the queue, in lines.
const QUEUE: usize = 8192;
/// The length limit of a line, in bytes; longer lines are truncated.
const MAX_LINE: usize = 8 << 10;
/// How long flushing the queue may take when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Collects lines before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// The size of the buffer, in bytes.
    pub size: usize,
    /// How often it is written.
    pub flush_frequency: Duration,
}

/// The sending end of the queue; clones share one queue.
#[derive(Clone)]
pub struct LogWriter {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// Flushes the queue when it is dropped.
pub struct Flush {
    writer: Option<JoinHandle<()>>,
    /// An empty line stops the thread.
    lines: SyncSender<Vec<u8>>,
}

impl LogWriter {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(out: impl Write + Send + 'static, buffer: Option<Buffer>) -> io::Result<(LogWriter, Flush)> {
        let (lines, queue) = sync_channel(QUEUE);
        let dropped = Arc::<AtomicU64>::default();
        let counter = dropped.clone();
        let thread = thread::Builder::new().name("log".to_owned());
        let writer = Some(thread.spawn(move || write_all(out, buffer, &queue, &counter))?);
        Ok((LogWriter { lines: lines.clone(), dropped }, Flush { writer, lines }))
    }
}

impl LogWriter {
    /// Enqueues a line.
    pub fn write_line(&self, line: String) {
        let mut line = line.into_bytes();
        if line.len() > MAX_LINE {
            line.truncate(MAX_LINE);
            line.extend_from_slice(b" [...]\n");
        }
        if let Err(TrySendError::Full(_)) = self.lines.try_send(line) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the thread of the log belongs to no runtime")]
fn write_all(out: impl Write, buffer: Option<Buffer>, queue: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    let mut out = BufWriter::with_capacity(buffer.map_or(0, |buffer| buffer.size), out);
    let mut flushed = Instant::now();
    loop {
        let line = match buffer {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(buffer) => queue.recv_timeout(buffer.flush_frequency.saturating_sub(flushed.elapsed())),
        };
        // A failure to log cannot be logged.
        match line {
            Ok(line) if !line.is_empty() => {
                drop(out.write_all(&line));
                if buffer.is_some_and(|buffer| flushed.elapsed() >= buffer.flush_frequency) {
                    drop(out.flush());
                    flushed = Instant::now();
                }
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return drop(out.flush()),
            Err(RecvTimeoutError::Timeout) => {
                drop(out.flush());
                flushed = Instant::now();
            }
        }
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
        let (log, flush) = LogWriter::start(pipe, None).unwrap();
        let line = format!("{}\n", "x".repeat(1000));
        for _ in 0..10 * QUEUE {
            log.write_line(line.clone());
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
    fn a_buffer_is_written_when_it_is_full_and_at_its_time() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let buffer = Buffer { size: 16, flush_frequency: Duration::from_millis(1) };
        let (log, flush) = LogWriter::start(pipe, Some(buffer)).unwrap();
        log.write_line("short\n".to_owned());
        let mut read = [0; 6];
        // Nothing else makes the thread write it.
        reader.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"short\n");
        drop((log, flush));
    }

    #[test]
    fn what_is_in_the_queue_is_written_at_the_end() {
        let (mut reader, pipe) = io::pipe().unwrap();
        let (log, flush) = LogWriter::start(pipe, None).unwrap();
        log.write_line("first\n".to_owned());
        log.write_line("y".repeat(2 * MAX_LINE));
        drop(flush);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("first\nyyyy") && text.ends_with("y [...]\n"));
    }
}
