//! The metrics of the process, from `/proc`; none where the system has no such files.

use parking_lot::Mutex;
use prometheus::{
    Gauge,
    core::{Collector, Desc},
    proto::{Metric, MetricFamily, MetricType},
};
use rustix::{
    param::page_size,
    time::{ClockId, clock_gettime},
};
use std::fs;

/// Clock ticks in a second, in `/proc/self/stat`. Linux has had no other value for programs in decades.
const TICKS: f64 = 100.0;

/// The metrics of the process.
pub(super) struct ProcessMetrics {
    gauges: Vec<(Gauge, Reading)>,
    /// The files are read once a scrape.
    reading: Mutex<()>,
}

/// A value of the process.
#[derive(Clone, Copy)]
enum Reading {
    CpuSeconds,
    OpenFiles,
    MaxFiles,
    ResidentBytes,
    VirtualBytes,
    MaxVirtualBytes,
    StartTime,
    ReceivedBytes,
    SentBytes,
}

/// Name, help text, and the value.
const METRICS: [(&str, &str, Reading); 9] = [
    ("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", Reading::CpuSeconds),
    ("process_open_fds", "Number of open file descriptors.", Reading::OpenFiles),
    ("process_max_fds", "Maximum number of open file descriptors.", Reading::MaxFiles),
    ("process_resident_memory_bytes", "Resident memory size in bytes.", Reading::ResidentBytes),
    ("process_virtual_memory_bytes", "Virtual memory size in bytes.", Reading::VirtualBytes),
    (
        "process_virtual_memory_max_bytes",
        "Maximum amount of virtual memory available in bytes.",
        Reading::MaxVirtualBytes,
    ),
    (
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        Reading::StartTime,
    ),
    (
        "process_network_receive_bytes_total",
        "Number of bytes received by the process over the network.",
        Reading::ReceivedBytes,
    ),
    (
        "process_network_transmit_bytes_total",
        "Number of bytes sent by the process over the network.",
        Reading::SentBytes,
    ),
];

impl ProcessMetrics {
    /// New metrics.
    ///
    /// # Errors
    /// Never, because the names are valid; the library checks them at run time.
    pub(super) fn new() -> Result<ProcessMetrics, prometheus::Error> {
        let gauge = |(name, help, reading)| Gauge::new(name, help).map(|gauge| (gauge, reading));
        let gauges = METRICS.into_iter().map(gauge).collect::<Result<_, prometheus::Error>>()?;
        Ok(ProcessMetrics { gauges, reading: Mutex::default() })
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.iter().flat_map(|(gauge, _)| gauge.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _reading = self.reading.lock();
        let process = Process::read();
        let known = self.gauges.iter().filter_map(|(gauge, reading)| {
            gauge.set(process.value(*reading)?);
            Some(gauge.collect().into_iter().map(|family| match reading {
                Reading::CpuSeconds | Reading::ReceivedBytes | Reading::SentBytes => as_counter(family),
                _ => family,
            }))
        });
        known.flatten().collect()
    }
}

/// A family of one gauge as a counter.
fn as_counter(mut family: MetricFamily) -> MetricFamily {
    let metrics = family.take_metric().into_iter().map(|gauge| {
        let mut counter = prometheus::proto::Counter::default();
        counter.set_value(gauge.get_gauge().get_value());
        let mut metric = Metric::default();
        metric.set_counter(counter);
        metric
    });
    family.set_metric(metrics.collect());
    family.set_field_type(MetricType::COUNTER);
    family
}

/// The texts of the files.
struct Process {
    stat: Option<String>,
    limits: Option<String>,
    network: Option<String>,
    /// The system's start time, in seconds since 1970.
    boot: f64,
    files: Option<usize>,
}

impl Process {
    fn read() -> Process {
        let text = |path: &str| fs::read_to_string(path).ok();
        Process {
            stat: text("/proc/self/stat"),
            limits: text("/proc/self/limits"),
            network: text("/proc/self/net/netstat"),
            boot: boot_time(),
            files: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
        }
    }

    fn value(&self, reading: Reading) -> Option<f64> {
        Some(match reading {
            Reading::CpuSeconds => (self.stat(11)? + self.stat(12)?) / TICKS,
            Reading::StartTime => self.boot + self.stat(19)? / TICKS,
            Reading::VirtualBytes => self.stat(20)?,
            Reading::ResidentBytes => self.stat(21)? * page_size() as f64,
            Reading::OpenFiles => self.files? as f64,
            Reading::MaxFiles => self.limit("Max open files")?,
            Reading::MaxVirtualBytes => self.limit("Max address space")?,
            Reading::ReceivedBytes => self.network("InOctets")?,
            Reading::SentBytes => self.network("OutOctets")?,
        })
    }

    /// A field of `/proc/self/stat`, counted from the state, which follows the name in parentheses.
    fn stat(&self, place: usize) -> Option<f64> {
        let (_, fields) = self.stat.as_ref()?.rsplit_once(") ")?;
        fields.split(' ').nth(place)?.trim().parse().ok()
    }

    /// The soft limit of this name; no limit is the greatest number.
    fn limit(&self, name: &str) -> Option<f64> {
        let line = self.limits.as_ref()?.lines().find_map(|line| line.strip_prefix(name))?;
        match line.split_whitespace().next()? {
            "unlimited" => Some(u64::MAX as f64),
            number => number.parse().ok(),
        }
    }

    /// A number of the IP layer: of the process's network namespace, as Prometheus' libraries tell it.
    fn network(&self, name: &str) -> Option<f64> {
        let mut lines = self.network.as_ref()?.lines().filter_map(|line| line.strip_prefix("IpExt: "));
        let (names, values) = (lines.next()?, lines.next()?);
        let place = names.split(' ').position(|known| known == name)?;
        values.split(' ').nth(place)?.parse().ok()
    }
}

/// The system's start time, in seconds since 1970: what `/proc/stat` says to those who may see it.
fn boot_time() -> f64 {
    let [now, since] = [ClockId::Realtime, ClockId::Boottime].map(clock_gettime);
    let seconds = |time: rustix::time::Timespec| time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    (seconds(now) - seconds(since)).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_places() {
        let fields: Vec<String> = (0..30).map(|number| format!("{}", number * 100)).collect();
        let process = Process {
            stat: Some(format!("7 (a ) name) {}", fields.join(" "))),
            limits: Some("Max open files            1024                 4096    files\nMax address space         unlimited            unlimited            bytes\n".to_owned()),
            network: Some("TcpExt: a b\nTcpExt: 1 2\nIpExt: InPkts InOctets OutOctets\nIpExt: 7 8 9\n".to_owned()),
            boot: 1e9,
            files: Some(12),
        };
        for (reading, expected) in [
            (Reading::CpuSeconds, 23.0),
            (Reading::StartTime, 1e9 + 19.0),
            (Reading::VirtualBytes, 2000.0),
            (Reading::ResidentBytes, 2100.0 * page_size() as f64),
            (Reading::OpenFiles, 12.0),
            (Reading::MaxFiles, 1024.0),
            (Reading::MaxVirtualBytes, u64::MAX as f64),
            (Reading::ReceivedBytes, 8.0),
            (Reading::SentBytes, 9.0),
        ] {
            assert_eq!(process.value(reading), Some(expected));
        }
    }

    #[test]
    fn the_start_time_of_the_system_is_that_of_proc() {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let told: f64 = stat.lines().find_map(|line| line.strip_prefix("btime ")).unwrap().parse().unwrap();
        assert!((boot_time() - told).abs() <= 2.0, "{} {told}", boot_time());
    }
}
