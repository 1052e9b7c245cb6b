//! Prints results to standard output, and progress to a terminal.

use pintle_machinery::{Value, json};
use pintle_storage::snapshot::{FORMAT_VERSION, Restored, SnapshotSummary};
use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    time::{Duration, Instant},
};

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
}

/// The interval of progress updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// Prints progress if standard error is a terminal.
pub(super) struct Progress {
    terminal: bool,
    last: Instant,
    told: bool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { terminal: io::stderr().is_terminal(), last: Instant::now(), told: false }
    }
}

impl Progress {
    /// Replaces the last progress line, at most once per interval.
    pub(super) fn tell(&mut self, text: impl FnOnce() -> String) {
        if self.terminal && self.last.elapsed() >= INTERVAL {
            (self.last, self.told) = (Instant::now(), true);
            eprint!("\r\x1b[K{}", text());
        }
    }

    /// Erases the progress line.
    pub(super) fn end(&self) {
        if self.told {
            eprint!("\r\x1b[K");
        }
    }
}

pub(super) fn print_summary(
    out: &mut dyn Write,
    output: Output,
    file: &Path,
    summary: &SnapshotSummary,
) -> io::Result<()> {
    match output {
        Output::Json => writeln!(out, "{}", summary_json(file, summary)),
        Output::Table => table(out, &summary_rows(file, summary)),
    }
}

pub(super) fn print_restored(
    out: &mut dyn Write,
    output: Output,
    file: &Path,
    restored: &Restored,
) -> io::Result<()> {
    match output {
        Output::Json => {
            let value = json!({
                "snapshot": summary_json(file, &restored.summary),
                "revision": restored.revision.0,
                "keys": restored.keys,
                "expired": restored.expired,
                "resumed": restored.resumed,
            });
            writeln!(out, "{value}")
        }
        Output::Table => {
            let mut rows = summary_rows(file, &restored.summary);
            rows.push(("RESTORED KEYS", restored.keys.to_string()));
            if restored.resumed {
                rows.push(("", "an interrupted restore of this snapshot was finished".to_owned()));
            }
            if restored.expired > 0 {
                rows.push(("EXPIRED KEYS", restored.expired.to_string()));
            }
            rows.push(("STORE REVISION", restored.revision.to_string()));
            table(out, &rows)
        }
    }
}

fn summary_json(file: &Path, summary: &SnapshotSummary) -> Value {
    let SnapshotSummary { header, forms, .. } = summary;
    json!({
        "file": file.display().to_string(),
        "formatVersion": FORMAT_VERSION,
        "source": header.source,
        "program": header.program,
        "saved": time(header.saved),
        "prefix": header.prefix,
        "revision": header.revision.0,
        "keys": summary.keys,
        "expiringKeys": summary.expiring,
        "keyBytes": summary.key_bytes,
        "valueBytes": summary.value_bytes,
        "values": {
            "json": forms.json,
            "protobuf": forms.protobuf,
            "encrypted": forms.encrypted,
            "other": forms.other,
        },
        "fileBytes": summary.file_bytes,
        "sha256": summary.sha256,
    })
}

fn summary_rows(file: &Path, summary: &SnapshotSummary) -> Vec<(&'static str, String)> {
    let SnapshotSummary { header, forms, .. } = summary;
    let forms = [
        (forms.json, "JSON"),
        (forms.protobuf, "protobuf"),
        (forms.encrypted, "encrypted"),
        (forms.other, "other"),
    ];
    let forms: Vec<String> =
        forms.iter().filter(|(count, _)| *count > 0).map(|(count, form)| format!("{count} {form}")).collect();
    vec![
        ("FILE", file.display().to_string()),
        ("SAVED", format!("{} from {} by {}", time(header.saved), header.source, header.program)),
        ("PREFIX", header.prefix.clone()),
        ("REVISION", header.revision.to_string()),
        ("KEYS", format!("{} ({} expire)", summary.keys, summary.expiring)),
        ("VALUES", forms.join(", ")),
        (
            "SIZE",
            format!(
                "{} bytes: {} of keys, {} of values",
                summary.file_bytes, summary.key_bytes, summary.value_bytes
            ),
        ),
        ("SHA-256", summary.sha256.clone()),
    ]
}

fn table(out: &mut dyn Write, rows: &[(&str, String)]) -> io::Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in rows {
        writeln!(out, "{name:width$}  {value}")?;
    }
    Ok(())
}

/// A time in the format of Kubernetes' timestamps.
fn time(milliseconds: u64) -> String {
    let seconds = i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| milliseconds.to_string(), |time| time.to_string())
}
