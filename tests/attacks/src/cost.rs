//! What an attack cost, and what it may cost.

use std::time::Duration;

/// What an attack cost everybody else.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The slowest answer of `/livez` while it lasted.
    pub slowest_livez: Duration,
    /// CPU time of the server, on all cores together. The kernel counts in hundredths of a second.
    pub cpu: Duration,
    /// The most memory that the server had since the attack began, in kB.
    pub peak_memory_kb: u64,
    /// How long it lasted.
    pub took: Duration,
}

/// What an attack may cost. A debug build may compute [`Bounds::DEBUG_FACTOR`] times as long.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The slowest answer of `/livez`.
    pub livez: Duration,
    /// CPU time of a release build.
    pub cpu: Duration,
    /// Peak memory of the server in kB.
    pub peak_memory_kb: u64,
}

impl Default for Bounds {
    /// What one request may cost.
    fn default() -> Bounds {
        Bounds { livez: Duration::from_secs(1), cpu: Duration::from_secs(1), peak_memory_kb: 1 << 20 }
    }
}

impl Bounds {
    /// How many times longer a debug build computes.
    pub const DEBUG_FACTOR: u32 = 20;

    /// How long the server may compute as it is built.
    pub fn cpu_as_built(&self) -> Duration {
        if is_release() { self.cpu } else { self.cpu * Bounds::DEBUG_FACTOR }
    }
}

/// Whether `PINTLE_SERVER` is a release build: cargo's folder says so.
pub fn is_release() -> bool {
    std::env::var_os("PINTLE_SERVER").is_some_and(|path| path.to_string_lossy().contains("release"))
}

impl Cost {
    /// Fails the test when the attack cost more than it may.
    ///
    /// # Panics
    /// Then.
    pub fn assert(&self, what: &str, bounds: &Bounds) {
        assert!(self.slowest_livez <= bounds.livez, "{what}: /livez took too long: {self:?}");
        assert!(self.cpu <= bounds.cpu_as_built(), "{what}: too much CPU time: {self:?}");
        assert!(self.peak_memory_kb <= bounds.peak_memory_kb, "{what}: too much memory: {self:?}");
    }
}
