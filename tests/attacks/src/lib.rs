//! Runs attacks on a real server and measures their cost for its other clients.
//!
//! An attack is a closure that sends requests. [`Target::attack`] runs it, with a concurrent [`Probe`] of `/livez`, and
//! returns its [`Cost`]: the slowest response of `/livez`, the CPU time and the peak memory of the server's process.
//! [`Cost::assert`] compares the cost with [`Bounds`].
//!
//! `cargo xtask test attacks` builds the server and names it in `PINTLE_SERVER`.

mod bodies;
mod cost;
mod kinds;
mod probe;
mod repair;
mod sweep;

pub use bodies::{Fill, Spot, body_with, spots, value_from, value_of_size};
pub use cost::{Bounds, Cost, is_release};
pub use kinds::{Served, base_object, served};
pub use probe::Probe;
pub use repair::Repair;
pub use sweep::Sweep;

use pintle_harness::{Client, Config, Error, OTHER_TOKEN, Server};
use std::{env, ffi::OsString, time::Instant};

/// The server under attack.
pub struct Target {
    /// The server process.
    pub server: Server,
}

impl Target {
    /// Starts a server on its embedded store.
    ///
    /// # Errors
    /// When `PINTLE_SERVER` is not set, or the server does not start.
    pub fn start() -> Result<Target, Error> {
        Target::start_with(&[])
    }

    /// Starts a server with further flags.
    ///
    /// # Errors
    /// As [`Target::start`].
    pub fn start_with(flags: &[&str]) -> Result<Target, Error> {
        let binary = env::var_os("PINTLE_SERVER").ok_or_else(not_named)?;
        let config = flags.iter().fold(Config::new(binary), |config, flag| config.flag(*flag));
        Ok(Target { server: Server::start(config)? })
    }

    /// A client of the administrator.
    ///
    /// # Errors
    /// When the server's authority cannot be read.
    pub fn master(&self) -> Result<Client, Error> {
        self.server.client()
    }

    /// A client of a user without groups, with the permissions that a test grants.
    ///
    /// # Errors
    /// When the server's authority cannot be read.
    pub fn stranger(&self) -> Result<Client, Error> {
        Ok(self.server.client()?.with_token(OTHER_TOKEN))
    }

    /// Runs an attack and returns its result and its cost. The server must be alive afterwards.
    ///
    /// # Errors
    /// Those of the attack, and when the server no longer answers.
    pub fn attack<T>(
        &mut self,
        attack: impl FnOnce(&Server) -> Result<T, Error>,
    ) -> Result<(T, Cost), Error> {
        self.server.reset_peak_memory()?;
        let before = self.server.cpu_time()?;
        let started = Instant::now();
        let probe = Probe::start(self.server.anonymous_client()?);
        let result = attack(&self.server);
        let slowest_livez = probe.stop();
        let took = started.elapsed();
        if !self.server.is_running() {
            return Err(format!("the server ended; its log:\n{}", self.server.log()?).into());
        }
        let cost = Cost {
            slowest_livez: slowest_livez?,
            cpu: self.server.cpu_time()?.saturating_sub(before),
            peak_memory_kb: self.server.memory_kb("VmHWM")?,
            took,
        };
        Ok((result?, cost))
    }
}

fn not_named() -> Error {
    format!("{} is not set: run `cargo xtask test attacks`", OsString::from("PINTLE_SERVER").display()).into()
}
