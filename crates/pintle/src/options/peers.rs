//! The flags of the proxy between servers of different versions. Names and defaults are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::flag;
use clap::{Arg, ArgMatches, value_parser};
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

/// The options of the proxy between servers of different versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerOptions {
    /// The authority of the other servers' certificates; `None` when requests are not forwarded to them.
    pub ca_file: Option<PathBuf>,
    /// The address at which the other servers reach this one; the advertised one if it or the port is empty.
    pub advertise_ip: String,
    /// The port at which the other servers reach this one; the secure port if it or the address is empty.
    pub advertise_port: String,
}

impl PeerOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            flag(
                "peer-ca-file",
                "FILE",
                "Certificate authorities of the other API servers' serving certificates",
            )
            .value_parser(value_parser!(PathBuf)),
            flag("peer-advertise-ip", "IP", "Address at which the other API servers reach this one"),
            flag("peer-advertise-port", "PORT", "Port at which the other API servers reach this one"),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> PeerOptions {
        let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
        let ca_file: Option<PathBuf> = matches.get_one("peer-ca-file").cloned();
        PeerOptions {
            ca_file: ca_file.filter(|path| !path.as_os_str().is_empty()),
            advertise_ip: text("peer-advertise-ip"),
            advertise_port: text("peer-advertise-port"),
        }
    }

    /// The errors of the options: without their gate they may not be given. `is_open` is whether the gate is.
    pub(crate) fn errors(&self, is_open: bool) -> Vec<String> {
        let given = [
            ("peer-ca-file", self.ca_file.is_some()),
            ("peer-advertise-ip", !self.advertise_ip.is_empty()),
            ("peer-advertise-port", !self.advertise_port.is_empty()),
        ];
        let refused = given.iter().filter(|(_, is_given)| *is_given && !is_open);
        let errors = refused.map(|(name, _)| {
            format!("--{name} requires UnknownVersionInteroperabilityProxy feature to be turned on")
        });
        errors.chain(self.address().err().filter(|_| is_open)).collect()
    }

    /// The address at which other servers reach this one, which others reach at `advertised`.
    ///
    /// # Errors
    /// When an option has no valid value.
    pub(crate) fn reached_at(&self, advertised: SocketAddr) -> Result<SocketAddr, String> {
        Ok(self.address()?.unwrap_or(advertised))
    }

    /// The configured address; `None` unless both of its parts are.
    fn address(&self) -> Result<Option<SocketAddr>, String> {
        let invalid = |name: &str, text: &str, kind: &str| {
            format!("invalid value {} for --{name}: it is no {kind}", pintle_go_forms::quote(text))
        };
        let (ip, port) = (self.advertise_ip.as_str(), self.advertise_port.as_str());
        let address = match ip {
            "" => None,
            ip => Some(ip.parse::<IpAddr>().map_err(|_| invalid("peer-advertise-ip", ip, "IP address"))?),
        };
        let number = match port {
            "" => None,
            port => {
                let number = port.parse::<u16>().ok().filter(|number| *number != 0);
                Some(number.ok_or_else(|| invalid("peer-advertise-port", port, "port"))?)
            }
        };
        Ok(address.zip(number).map(SocketAddr::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(ca_file: &str, ip: &str, port: &str) -> PeerOptions {
        PeerOptions {
            ca_file: (!ca_file.is_empty()).then(|| PathBuf::from(ca_file)),
            advertise_ip: ip.to_owned(),
            advertise_port: port.to_owned(),
        }
    }

    #[test]
    fn options_need_the_gate_and_valid_values() {
        let check = |options: PeerOptions, is_open: bool, expected: Result<(), &str>| {
            let expected = expected.err().unwrap_or_default();
            assert_eq!(options.errors(is_open).join(", "), expected, "{options:?}");
        };
        check(options("", "", ""), false, Ok(()));
        check(options("/ca", "10.0.0.1", "6443"), true, Ok(()));
        check(
            options("/ca", "", ""),
            false,
            Err("--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on"),
        );
        check(
            options("", "10.0.0.1", "6443"),
            false,
            Err("--peer-advertise-ip requires UnknownVersionInteroperabilityProxy feature to be turned on, \
                 --peer-advertise-port requires UnknownVersionInteroperabilityProxy feature to be turned on"),
        );
        check(
            options("", "example.com", "1"),
            true,
            Err("invalid value \"example.com\" for --peer-advertise-ip: it is no IP address"),
        );
        for port in ["0", "65536", "https"] {
            let expected = format!("invalid value \"{port}\" for --peer-advertise-port: it is no port");
            check(options("", "", port), true, Err(&expected));
        }
    }

    #[test]
    fn address_and_port_count_together_only() {
        let check = |ip: &str, port: &str, expected: &str| {
            let found = options("", ip, port).reached_at("10.20.30.40:6443".parse().unwrap());
            assert_eq!(found.map(|address| address.to_string()), Ok(expected.to_owned()));
        };
        check("", "", "10.20.30.40:6443");
        check("10.0.0.1", "", "10.20.30.40:6443");
        check("", "443", "10.20.30.40:6443");
        check("10.0.0.1", "443", "10.0.0.1:443");
        check("fd00::1", "443", "[fd00::1]:443");
    }
}
