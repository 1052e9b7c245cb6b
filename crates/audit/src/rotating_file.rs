//! A log file that is rotated when it is too large.
//!
//! The full file is renamed, with the time in its name: `audit.log` becomes `audit-2026-01-02T03-04-05.678.log`. Old
//! files are recognized by their names alone, so that other programs may delete them, and a restarted server finds
//! them. A separate thread deletes old files that are too many or too old, and compresses the others if that is
//! configured; writes do not wait for it.

use flate2::{Compression, write::GzEncoder};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

/// The limits of a log file and of its old files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationConfig {
    /// The largest size of a file, in bytes.
    pub max_size: u64,
    /// The largest age of an old file, in days; 0 is no limit.
    pub max_age_days: u32,
    /// The largest number of old files; 0 is no limit.
    pub max_backups: u32,
    /// Whether old files are compressed with gzip.
    pub compress: bool,
}

/// The format of the time in the name of an old file.
const TIME: &str = "%Y-%m-%dT%H-%M-%S.%3f";
const COMPRESSED: &str = ".gz";

/// A log file with rotation.
pub(crate) struct RotatingFile {
    path: PathBuf,
    config: RotationConfig,
    open: Option<OpenFile>,
    /// Wakes the thread that maintains old files; the thread ends when this is dropped.
    mill: Option<mpsc::SyncSender<()>>,
}

struct OpenFile {
    file: File,
    size: u64,
}

impl RotatingFile {
    /// The first write opens the file.
    pub(crate) fn new(path: PathBuf, config: RotationConfig) -> RotatingFile {
        RotatingFile { path, config, open: None, mill: None }
    }

    /// The number of bytes that fit into the open file; 0 when none is open.
    pub(crate) fn room(&self) -> usize {
        let room = self.open.as_ref().map_or(0, |open| self.config.max_size.saturating_sub(open.size));
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Appends whole lines, to one file.
    pub(crate) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = lines.len() as u64;
        let max_size = self.config.max_size;
        if length > max_size {
            let why = format!("write length {length} exceeds maximum file size {max_size}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                self.wake_mill();
                let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
                OpenFile { size: file.metadata()?.len(), file }
            }
        };
        let mut open = if open.size + length > max_size { self.rotate(open)? } else { open };
        let written = open.file.write_all(lines);
        open.size += length;
        self.open = Some(open);
        written
    }

    /// Renames the file and opens a new one.
    fn rotate(&mut self, full: OpenFile) -> io::Result<OpenFile> {
        let permissions = full.file.metadata()?.permissions();
        drop(full);
        fs::rename(&self.path, self.backup_name(Timestamp::now()))?;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
        file.set_permissions(permissions)?;
        self.wake_mill();
        Ok(OpenFile { file, size: 0 })
    }

    /// An unused name: the second of two files of the same millisecond gets the next millisecond.
    fn backup_name(&self, mut now: Timestamp) -> PathBuf {
        loop {
            let (prefix, suffix) = affixes(&self.path);
            let time = now.to_zoned(TimeZone::UTC).strftime(TIME);
            let name = self.path.with_file_name(format!("{prefix}{time}{suffix}"));
            let compressed = with_suffix(&name, COMPRESSED);
            match name.exists() || compressed.exists() {
                false => return name,
                true => now += jiff::SignedDuration::from_millis(1),
            }
        }
    }

    fn wake_mill(&mut self) {
        let RotationConfig { max_age_days, max_backups, compress, .. } = self.config;
        if max_age_days == 0 && max_backups == 0 && !compress {
            return;
        }
        let mill = self.mill.get_or_insert_with(|| {
            let (mill, wakes) = mpsc::sync_channel(1);
            let (path, config) = (self.path.clone(), self.config);
            let spawned = thread::Builder::new().name("audit-log-files".to_owned()).spawn(move || {
                for () in wakes {
                    if let Err(error) = look_after_old_files(&path, &config, Timestamp::now()) {
                        tracing::error!(%error, path = %path.display(), "old audit logs cannot be looked after");
                    }
                }
            });
            if let Err(error) = spawned {
                tracing::error!(%error, "old audit logs cannot be looked after");
            }
            mill
        });
        // One pending wake-up is enough.
        let _ = mill.try_send(());
    }
}

/// The parts before and after the time in the name of an old file.
fn affixes(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let suffix = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    (format!("{}-", text(path.file_stem())), suffix.unwrap_or_default())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An old file.
struct OldFile {
    path: PathBuf,
    time: Timestamp,
    is_compressed: bool,
}

/// The old files of a log, newest first.
fn old_files(path: &Path) -> io::Result<Vec<OldFile>> {
    let (prefix, suffix) = affixes(path);
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let (name, is_compressed) = match name.strip_suffix(COMPRESSED) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let time = name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(&suffix));
        let time = time.and_then(|time| DateTime::strptime(TIME, time).ok());
        let Some(time) = time.and_then(|time| time.to_zoned(TimeZone::UTC).ok()) else { continue };
        found.push(OldFile { path: entry.path(), time: time.timestamp(), is_compressed });
    }
    found.sort_by_key(|file| std::cmp::Reverse(file.time));
    Ok(found)
}

/// Deletes old files that are too many or too old, and compresses the others.
fn look_after_old_files(path: &Path, config: &RotationConfig, now: Timestamp) -> io::Result<()> {
    let max_backups = if config.max_backups == 0 { usize::MAX } else { config.max_backups as usize };
    let mut kept = Vec::new();
    for file in old_files(path)? {
        let age = now.duration_since(file.time).as_hours() / 24;
        let is_too_old = config.max_age_days > 0 && age >= i64::from(config.max_age_days);
        // A file whose compression was interrupted exists in both forms.
        let is_known = kept.iter().any(|kept: &OldFile| kept.time == file.time);
        if is_too_old || kept.len() >= max_backups && !is_known {
            fs::remove_file(&file.path)?;
        } else {
            kept.push(file);
        }
    }
    if config.compress {
        for file in kept.iter().filter(|file| !file.is_compressed) {
            compress(&file.path)?;
        }
    }
    Ok(())
}

fn compress(path: &Path) -> io::Result<()> {
    let mut source = File::open(path)?;
    let target = with_suffix(path, COMPRESSED);
    let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&target)?;
    file.set_permissions(source.metadata()?.permissions())?;
    let mut encoder = GzEncoder::new(file, Compression::default());
    let written =
        io::copy(&mut source, &mut encoder).and_then(|_| encoder.finish()).and_then(|mut file| file.flush());
    match written {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            // The compressed file is incomplete; the original is still there.
            fs::remove_file(&target)?;
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
