//! Measures and limits the cost of an attack.

use std::time::Duration;

/// The cost of an attack for the server and its other clients.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The slowest response of `/livez` during the attack.
    pub slowest_livez: Duration,
    /// CPU time of the server, on all cores together. The kernel counts in hundredths of a second.
    pub cpu: Duration,
    /// The peak memory of the server since the attack began, in kB.
    pub peak_memory_kb: u64,
    /// The duration of the attack.
    pub took: Duration,
}

/// The limits of the cost of an attack. For a debug build, that of CPU time is [`Bounds::DEBUG_FACTOR`] times higher.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The slowest response of `/livez`.
    pub livez: Duration,
    /// CPU time of a release build.
    pub cpu: Duration,
    /// Peak memory of the server in kB.
    pub peak_memory_kb: u64,
}

impl Default for Bounds {
    /// The limits of one request.
    fn default() -> Bounds {
        Bounds { livez: Duration::from_secs(1), cpu: Duration::from_secs(1), peak_memory_kb: 1 << 20 }
    }
}

impl Bounds {
    /// The ratio of the CPU time of a debug build to that of a release build.
    pub const DEBUG_FACTOR: u32 = 20;

    /// The limit of the CPU time for the server's build.
    pub fn cpu_as_built(&self) -> Duration {
        if is_release() { self.cpu } else { self.cpu * Bounds::DEBUG_FACTOR }
    }
}

/// Whether `PINTLE_SERVER` is a release build, by the folder of the binary.
pub fn is_release() -> bool {
    std::env::var_os("PINTLE_SERVER").is_some_and(|path| path.to_string_lossy().contains("release"))
}

impl Cost {
    /// Checks that the cost is within the limits.
    ///
    /// # Panics
    /// When the cost exceeds a limit.
    pub fn assert(&self, what: &str, bounds: &Bounds) {
        assert!(self.slowest_livez <= bounds.livez, "{what}: /livez took too long: {self:?}");
        assert!(self.cpu <= bounds.cpu_as_built(), "{what}: too much CPU time: {self:?}");
        assert!(self.peak_memory_kb <= bounds.peak_memory_kb, "{what}: too much memory: {self:?}");
    }
}
