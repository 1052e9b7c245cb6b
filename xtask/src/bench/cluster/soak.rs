//! Samples memory and disk during a long run, and judges their growth.
//!
//! Events live, and history is kept, for longer than a soak usually takes. So a soak gives the server lifetimes of a
//! third of the warm-up: after it, as much expires and is compacted as is written.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use pintle_harness::{Error, Server};

pub(super) const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// The growth that a soak permits: a tenth.
const GROWTH: f64 = 0.1;
/// The fewest samples after the warm-up, of which the first third is compared with the last.
const MIN_SAMPLES: usize = 9;
/// kube-apiserver's defaults.
const EVENT_TTL: Duration = Duration::from_secs(3600);
const COMPACTION_INTERVAL: Duration = Duration::from_secs(300);
/// Blocks of `stat` have this size whatever the file system's are.
const BLOCK_BYTES: u64 = 512;

/// The limits of a soak.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) warm_up: Duration,
    /// The part by which memory and disk may grow.
    growth: f64,
}

/// A sample of a server in a soak.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    at: Duration,
    resident_kb: u64,
    disk_kb: u64,
}

/// The memory and disk at the end of a soak, in megabytes, beside those after the warm-up.
#[derive(Debug)]
pub(super) struct Growth {
    memory: [f64; 2],
    disk: [f64; 2],
    permitted: f64,
}

impl Limits {
    /// The limits of a soak of so many seconds, of which the first half is the warm-up unless it is given.
    pub(super) fn new(seconds: u32, warm_up: Option<u32>, growth: Option<f64>) -> Result<Limits, String> {
        let warm_up = warm_up.unwrap_or(seconds / 2);
        let samples = u64::from(seconds.saturating_sub(warm_up)) / SAMPLE_EVERY.as_secs();
        if (samples as usize) <= MIN_SAMPLES {
            let least = SAMPLE_EVERY * (MIN_SAMPLES as u32 + 1);
            return Err(format!("the soak needs {least:?} after the warm-up"));
        }
        let warm_up = Duration::from_secs(warm_up.into());
        Ok(Limits { warm_up, growth: growth.unwrap_or(GROWTH) })
    }

    /// The flags by which events expire and history is compacted within the warm-up.
    pub(super) fn server_flags(&self) -> [String; 2] {
        let third = Duration::from_secs((self.warm_up.as_secs() / 3).max(10));
        [("--event-ttl", EVENT_TTL), ("--etcd-compaction-interval", COMPACTION_INTERVAL)]
            .map(|(flag, most)| format!("{flag}={}s", third.min(most).as_secs()))
    }
}

impl Sample {
    pub(super) fn take(server: &Server, at: Duration) -> Result<Sample, Error> {
        let disk_kb = bytes_of(&server.directory().join("data"))? / 1024;
        Ok(Sample { at, resident_kb: server.memory_kb("VmRSS")?, disk_kb })
    }

    /// A row of the table.
    pub(super) fn row(&self, phase: &str) -> String {
        let Sample { at, resident_kb, disk_kb } = self;
        format!(
            "| {} | {:.1} | {:.1} | {phase} |",
            at.as_secs(),
            megabytes(*resident_kb),
            megabytes(*disk_kb)
        )
    }
}

/// The bytes that the files below a directory occupy.
fn bytes_of(directory: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // The server deletes files meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += match metadata.is_dir() {
            true => bytes_of(&entry.path())?,
            false => metadata.blocks() * BLOCK_BYTES,
        };
    }
    Ok(bytes)
}

impl Growth {
    /// Compares the medians of the first third and of the last third of the samples after the warm-up: a single sample
    /// may be before a compaction or after it.
    pub(super) fn of(samples: &[Sample], limits: &Limits) -> Result<Growth, String> {
        let samples: Vec<_> = samples.iter().filter(|sample| sample.at >= limits.warm_up).collect();
        if samples.len() < MIN_SAMPLES {
            return Err(format!("there are only {} samples after the warm-up", samples.len()));
        }
        let third = samples.len() / 3;
        let compare = |value: fn(&Sample) -> u64| {
            let values: Vec<_> = samples.iter().map(|sample| value(sample)).collect();
            let first = values.iter().take(third).copied().collect();
            let last = values.iter().rev().take(third).copied().collect();
            [first, last].map(|values| megabytes(median(values)))
        };
        let memory = compare(|sample| sample.resident_kb);
        let disk = compare(|sample| sample.disk_kb);
        Ok(Growth { memory, disk, permitted: limits.growth })
    }

    pub(super) fn is_within(&self, limits: &Limits) -> bool {
        [self.memory, self.disk].into_iter().all(|pair| part(pair) <= limits.growth)
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, pair) in [("memory", self.memory), ("disk", self.disk)] {
            let [first, last] = pair;
            let percent = 100.0 * part(pair);
            let verdict = if part(pair) <= self.permitted { "permitted" } else { "TOO MUCH" };
            writeln!(
                formatter,
                "{what}: {first:.1} MB after the warm-up, {last:.1} MB at the end: {percent:+.1} % \
                 ({verdict}: up to {:.0} %)",
                100.0 * self.permitted
            )?;
        }
        Ok(())
    }
}

fn part([first, last]: [f64; 2]) -> f64 {
    last / first - 1.0
}

fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { warm_up: Duration::from_secs(100), growth: 0.1 };

    /// Samples each ten seconds, the first one in the warm-up.
    fn samples(megabytes: impl Fn(u64) -> (u64, u64)) -> Vec<Sample> {
        let sample = |number| {
            let (resident, disk) = megabytes(number);
            let at = Duration::from_secs(90 + 10 * number);
            Sample { at, resident_kb: 1024 * resident, disk_kb: 1024 * disk }
        };
        (0..=30).map(sample).collect()
    }

    #[test]
    fn what_grows_after_the_warm_up_fails() {
        type Megabytes = fn(u64) -> (u64, u64);
        let rows: [(&str, Megabytes, bool); 7] = [
            ("nothing grows", |_| (200, 50), true),
            ("the warm-up does not count", |number| (if number == 0 { 20 } else { 200 }, 50), true),
            ("memory grows by a twentieth", |number| (200 + number / 3, 50), true),
            ("memory grows by a fifth", |number| (200 + 2 * number, 50), false),
            ("disk grows by a fifth", |number| (200, 100 + number), false),
            ("both swing", |number| (200 + 50 * (number % 2), 50 + 10 * (number % 3)), true),
            ("one sample is high", |number| (if number == 30 { 900 } else { 200 }, 50), true),
        ];
        for (what, megabytes, is_within) in rows {
            let growth = Growth::of(&samples(megabytes), &LIMITS).unwrap();
            assert_eq!(growth.is_within(&LIMITS), is_within, "{what}: {growth}");
            assert_eq!(!growth.to_string().contains("TOO MUCH"), is_within, "{what}: {growth}");
        }
    }

    #[test]
    fn growth_is_told_in_megabytes_and_percent() {
        let growth = Growth::of(&samples(|number| (100 + number, 400 - number)), &LIMITS).unwrap();
        assert_eq!(
            growth.to_string(),
            "memory: 106.0 MB after the warm-up, 126.0 MB at the end: +18.9 % (TOO MUCH: up to 10 %)\n\
             disk: 395.0 MB after the warm-up, 375.0 MB at the end: -5.1 % (permitted: up to 10 %)\n"
        );
        assert!(Growth::of(&samples(|_| (1, 1))[..9], &LIMITS).is_err());
        assert!(Growth::of(&samples(|_| (1, 1))[..10], &LIMITS).is_ok());
    }

    #[test]
    fn a_soak_has_samples_after_its_warm_up() {
        for (seconds, warm_up, expected) in
            [(200, None, Some(100)), (198, None, None), (600, Some(500), Some(500)), (600, Some(501), None)]
        {
            let limits = Limits::new(seconds, warm_up, None);
            assert_eq!(limits.ok().map(|limits| limits.warm_up.as_secs()), expected, "{seconds} {warm_up:?}");
        }
        let flags = |warm_up| Limits { warm_up: Duration::from_secs(warm_up), growth: 0.1 }.server_flags();
        assert_eq!(flags(300), ["--event-ttl=100s", "--etcd-compaction-interval=100s"]);
        assert_eq!(flags(7200), ["--event-ttl=2400s", "--etcd-compaction-interval=300s"]);
        assert_eq!(flags(86400), ["--event-ttl=3600s", "--etcd-compaction-interval=300s"]);
    }

    #[test]
    fn the_files_of_all_directories_count() {
        let directory = std::env::temp_dir().join(format!("pintle-soak-{}", std::process::id()));
        fs::create_dir_all(directory.join("a/b")).unwrap();
        let before = bytes_of(&directory).unwrap();
        fs::write(directory.join("a/b/c"), vec![1; 100_000]).unwrap();
        fs::write(directory.join("d"), vec![1; 50_000]).unwrap();
        let after = bytes_of(&directory).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        // File systems round up to their blocks.
        assert_eq!(before, 0);
        assert!((150_000..300_000).contains(&after), "{after}");
    }
}
