//! The flags of admission: plugins to enable and disable. Names and messages are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).

use super::arguments::{list, set_list};
use clap::{Arg, ArgMatches};

/// Changes to the default set of admission plugins, by plugin name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// Plugins to enable besides the default ones.
    pub enable_plugins: Vec<String>,
    /// Plugins to disable.
    pub disable_plugins: Vec<String>,
}

const ENABLE: &str = "enable-admission-plugins";
const DISABLE: &str = "disable-admission-plugins";

impl AdmissionOptions {
    /// The flags.
    pub fn args() -> [Arg; 2] {
        [
            list(ENABLE, "NAME,…", "admission plugins to switch on beside the default ones"),
            list(DISABLE, "NAME,…", "admission plugins to switch off"),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> AdmissionOptions {
        let mut options = AdmissionOptions::default();
        set_list(matches, ENABLE, &mut options.enable_plugins);
        set_list(matches, DISABLE, &mut options.disable_plugins);
        options
    }
}
