//! The log backend: a line for each event.

use crate::rotating_file::{RotatingFile, RotationConfig};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// As JSON.
    Json,
    /// As a line that says less.
    Legacy,
}

impl LogFormat {
    /// All, by the names of the flag's values.
    pub const ALL: [(&str, LogFormat); 2] = [("legacy", LogFormat::Legacy), ("json", LogFormat::Json)];
}

/// Where a log is.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The file; `-` is the standard output.
    pub path: PathBuf,
    /// How events are written.
    pub format: LogFormat,
    /// When another file is begun; `None` is never.
    pub rotation: Option<RotationConfig>,
}

/// Why a log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("opening the audit log {}: {source}", path.display())]
pub struct LogOpenError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// A log that is written. Each write is whole lines, one writer at a time.
pub struct Log {
    format: LogFormat,
    out: Mutex<Output>,
}

enum Output {
    Stdout,
    File(File),
    Rotating(RotatingFile),
}

impl Log {
    /// Opens a log, whose directory is made if there is none. What is in the file stays there.
    ///
    /// # Errors
    /// When it cannot be written.
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
        Ok(Log { format: config.format, out: Mutex::new(out) })
    }

    pub(crate) fn is_legacy(&self) -> bool {
        self.format == LogFormat::Legacy
    }

    /// Writes events, which end in line feeds.
    pub(crate) fn write(&self, events: &[Bytes]) -> io::Result<()> {
        let mut out = self.out.lock();
        let mut result = Ok(());
        for event in events {
            let written = match &mut *out {
                Output::Stdout => io::stdout().lock().write_all(event),
                Output::File(file) => file.write_all(event),
                Output::Rotating(file) => file.write(event),
            };
            result = result.and(written);
        }
        result
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
