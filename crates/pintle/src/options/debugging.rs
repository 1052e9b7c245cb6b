//! The flags of the endpoints for debugging
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::{flag, set, switch};
use clap::{Arg, ArgMatches};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// The options of the endpoints for debugging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebuggingOptions {
    /// The values of all flags, as `/flagz` shows them.
    pub flags: Arc<BTreeMap<String, String>>,
    /// Whether there are `/debug/pprof` and `/debug/flags`.
    pub profiling: bool,
    /// Whether waiting for locks should be profiled. There is no such profile.
    pub contention_profiling: bool,
    /// The Unix socket that serves profiles and the verbosity of the log to everybody who may open it.
    pub debug_socket_path: Option<PathBuf>,
    /// Whether `/logs` serves the files below `/var/log`. Deprecated.
    pub enable_logs_handler: bool,
}

impl Default for DebuggingOptions {
    fn default() -> DebuggingOptions {
        DebuggingOptions {
            flags: Arc::default(),
            profiling: true,
            contention_profiling: false,
            debug_socket_path: None,
            enable_logs_handler: false,
        }
    }
}

impl DebuggingOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            switch("profiling", "Serves profiles at /debug/pprof and the log verbosity at /debug/flags"),
            switch("contention-profiling", "Profiles lock contention; it has no effect"),
            flag("debug-socket-path", "PATH", "Unix socket that serves profiles without authorization"),
            switch("enable-logs-handler", "Deprecated: serves the files below /var/log at /logs"),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> DebuggingOptions {
        let mut options = DebuggingOptions::default();
        set(matches, "profiling", &mut options.profiling);
        set(matches, "contention-profiling", &mut options.contention_profiling);
        set(matches, "enable-logs-handler", &mut options.enable_logs_handler);
        let path = matches.get_one::<String>("debug-socket-path").filter(|path| !path.is_empty());
        options.debug_socket_path = path.map(PathBuf::from);
        options
    }
}
