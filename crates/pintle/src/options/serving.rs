//! The flags of the secure port: TLS, server names, HTTP/2, headers for browsers
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::{OutOfRange, ValueError, flag, float, integer, list, set, set_list, switch};
use clap::{Arg, ArgAction, ArgMatches};
use http::HeaderValue;
use pintle_apiserver::{
    filters::TransportFilters,
    serving::tls::{TlsSettings, TlsVersion},
};
use regex::Regex;
use std::{io, net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc};
use tokio::net::{TcpListener, TcpSocket};

/// The options of the secure port.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServingOptions {
    /// The minimum TLS version by Go's name; the empty name is 1.2 (`--tls-min-version`).
    pub tls_min_version: String,
    /// Cipher suites of TLS 1.2 by Go's names (`--tls-cipher-suites`).
    pub tls_cipher_suites: Vec<String>,
    /// Key exchanges by Go's numbers (`--tls-curve-preferences`).
    pub tls_curve_preferences: Vec<u16>,
    /// Certificates for server names (`--tls-sni-cert-key`).
    pub tls_sni_cert_keys: Vec<SniCertKey>,
    /// The maximum of concurrent streams on an HTTP/2 connection; zero is the default.
    pub http2_max_streams_per_connection: u32,
    /// Whether HTTP/2 is disabled.
    pub disable_http2_serving: bool,
    /// Whether other processes may listen on the same port.
    pub permit_port_sharing: bool,
    /// Whether other processes may listen on the same port at other addresses. They always may.
    pub permit_address_sharing: bool,
    /// The directives of `Strict-Transport-Security`; an empty list omits the header.
    pub strict_transport_security_directives: Vec<String>,
    /// Patterns of the origins whose pages may read responses.
    pub cors_allowed_origins: Vec<String>,
    /// The probability that a request closes its HTTP/2 connection, 0 to 0.02.
    pub goaway_chance: f64,
}

/// A certificate for server names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SniCertKey {
    /// The file of the certificate.
    pub cert_file: PathBuf,
    /// The file of its key.
    pub key_file: PathBuf,
    /// The names, possibly with a wildcard; an empty list stands for the names in the certificate.
    pub names: Vec<String>,
}

impl FromStr for SniCertKey {
    type Err = String;

    /// Reads `certificate,key[:name,…]`.
    fn from_str(text: &str) -> Result<SniCertKey, String> {
        let (files, names) = match text.split_once(':') {
            Some((_, names)) if names.trim().is_empty() => {
                return Err("empty names list is not allowed".to_owned());
            }
            Some((files, names)) => {
                (files, names.trim().split(',').map(|name| name.trim().to_owned()).collect())
            }
            None => (text, Vec::new()),
        };
        match files.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
            [cert, key] => Ok(SniCertKey { cert_file: cert.into(), key_file: key.into(), names }),
            _ => Err("expected comma separated certificate and key file paths".to_owned()),
        }
    }
}

/// Kube-apiserver's help text of the flag, which is part of its errors.
const CORS_HELP: &str = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression \
                         to support subdomain matching. If this list is empty CORS will not be enabled. Please ensure \
                         each expression matches the entire hostname by anchoring to the start with '^' or including \
                         the '//' prefix, and by anchoring to the end with '$' or including the ':' port separator \
                         suffix. Examples of valid expressions are '//example\\.com(:|$)' and \
                         '^https://example\\.com(:|$)'";

impl ServingOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            flag("tls-min-version", "VERSION", "Minimum version of TLS: VersionTLS12 or VersionTLS13"),
            list("tls-cipher-suites", "NAME,…", "Cipher suites of TLS 1.2, by Go's names"),
            flag("tls-curve-preferences", "N,…", "Key exchange mechanisms (curves), by Go's numbers")
                .action(ArgAction::Append)
                .value_parser(curves),
            flag(
                "tls-sni-cert-key",
                "CERT,KEY[:NAME,…]",
                "Serving certificate and private key for server names; by default those in the certificate",
            )
            .action(ArgAction::Append)
            .value_parser(str::parse::<SniCertKey>),
            flag(
                "http2-max-streams-per-connection",
                "N",
                "Maximum number of concurrent streams of an HTTP/2 connection; 0 for 100",
            )
            .value_parser(integer::<u32>),
            switch("disable-http2-serving", "Disables HTTP/2"),
            switch(
                "permit-port-sharing",
                "Sets SO_REUSEPORT, so that other processes may listen on the same port",
            ),
            switch(
                "permit-address-sharing",
                "Sets SO_REUSEADDR on the port; it has no effect, as this is always set",
            ),
            list(
                "strict-transport-security-directives",
                "DIRECTIVE,…",
                "Directives of the HSTS header: max-age=SECONDS, includeSubDomains, preload; empty for no header",
            ),
            list("cors-allowed-origins", "REGEX,…", "Patterns of the allowed CORS origins"),
            flag(
                "goaway-chance",
                "FRACTION",
                "Fraction of requests after which the HTTP/2 connection is closed with GOAWAY, up to 0.02",
            )
            .value_parser(float),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> ServingOptions {
        let mut options = ServingOptions::default();
        set(matches, "tls-min-version", &mut options.tls_min_version);
        set_list(matches, "tls-cipher-suites", &mut options.tls_cipher_suites);
        let curves = matches.get_many::<Vec<u16>>("tls-curve-preferences").into_iter().flatten();
        options.tls_curve_preferences = curves.flatten().copied().collect();
        options.tls_sni_cert_keys =
            matches.get_many("tls-sni-cert-key").into_iter().flatten().cloned().collect();
        set(matches, "http2-max-streams-per-connection", &mut options.http2_max_streams_per_connection);
        set(matches, "disable-http2-serving", &mut options.disable_http2_serving);
        set(matches, "permit-port-sharing", &mut options.permit_port_sharing);
        set(matches, "permit-address-sharing", &mut options.permit_address_sharing);
        set_list(
            matches,
            "strict-transport-security-directives",
            &mut options.strict_transport_security_directives,
        );
        set_list(matches, "cors-allowed-origins", &mut options.cors_allowed_origins);
        set(matches, "goaway-chance", &mut options.goaway_chance);
        options
    }

    /// The TLS settings.
    ///
    /// # Errors
    /// When the TLS version is unknown.
    pub(crate) fn tls_settings(&self) -> Result<TlsSettings, String> {
        let min_version = TlsVersion::parse(&self.tls_min_version).map_err(|error| error.to_string())?;
        let curves = &self.tls_curve_preferences;
        if let Some(twice) =
            (1..).zip(curves).find(|(next, curve)| curves.iter().skip(*next).any(|other| other == *curve))
        {
            return Err(format!("duplicate curve preference {}", twice.1));
        }
        if matches!(self.tls_min_version.as_str(), "VersionTLS10" | "VersionTLS11") {
            tracing::warn!("--tls-min-version={}: TLS 1.2 is the least that is spoken", self.tls_min_version);
        }
        let mut settings = TlsSettings::default();
        settings.min_version = min_version;
        settings.cipher_suites = self.tls_cipher_suites.clone();
        settings.curve_preferences = self.tls_curve_preferences.clone();
        settings.http2 = !self.disable_http2_serving;
        Ok(settings)
    }

    /// The error of the probability that a request closes its connection.
    pub(crate) fn goaway_error(&self) -> Option<String> {
        let is_valid = (0.0..=0.02).contains(&self.goaway_chance);
        (!is_valid).then(|| "--goaway-chance can not be less than 0 or greater than 0.02".to_owned())
    }

    /// The errors of the headers for browsers.
    pub(crate) fn header_errors(&self) -> Vec<String> {
        let directives = self.strict_transport_security_directives.iter();
        let directives = directives.filter_map(|directive| wrong_directive(directive)).map(str::to_owned);
        let origins = self.cors_allowed_origins.iter().filter_map(|expression| origin(expression).err());
        directives.chain(origins).collect()
    }

    /// The settings of the filters for browsers and connections.
    ///
    /// # Errors
    /// When the pattern of an origin is invalid, in kube-apiserver's words.
    pub(crate) fn transport_filters(&self) -> Result<TransportFilters, String> {
        let directives = &self.strict_transport_security_directives;
        let strict_transport_security = match directives.is_empty() {
            true => None,
            // The validated directives fit into a header.
            false => HeaderValue::from_str(&directives.join("; ")).ok(),
        };
        let origins = self.cors_allowed_origins.iter().map(|expression| origin(expression));
        let goaway_chance = if self.disable_http2_serving { 0.0 } else { self.goaway_chance };
        let mut filters = TransportFilters::default();
        filters.strict_transport_security = strict_transport_security;
        filters.cors_allowed_origins = origins.collect::<Result<_, _>>()?;
        filters.goaway_chance = goaway_chance;
        filters.drain = Some(Arc::default());
        Ok(filters)
    }

    /// Binds the address and listens.
    pub(crate) fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As Go's listeners: a restarted server does not wait for old connections.
        socket.set_reuseaddr(true)?;
        if self.permit_port_sharing {
            socket.set_reuseport(true)?;
        }
        socket.bind(address)?;
        socket.listen(1024)
    }
}

/// Parses a list of numbers, which is no CSV: it has no empty fields and no quotes.
fn curves(text: &str) -> Result<Vec<u16>, ValueError> {
    let curve = |field: &str| {
        let number = integer::<i32>(field);
        let curve = number.map(|number| (number, u16::try_from(number).ok().filter(|curve| *curve > 0)));
        match curve {
            Ok((_, Some(curve))) => Ok(curve),
            Ok((number, None)) => Err(OutOfRange::Message(format!(
                "curve preference {number} is out of range (must be 1-65535)"
            ))
            .into()),
            Err(error) => Err(error),
        }
    };
    text.split(',').map(curve).collect()
}

fn wrong_directive(directive: &str) -> Option<&'static str> {
    let invalid = "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, \
                   includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more \
                   information";
    match directive {
        directive if directive.trim().is_empty() => {
            Some("empty value in strict-transport-security-directives")
        }
        "includeSubDomains" | "preload" => None,
        directive => match directive.split_once('=') {
            Some(("max-age", age)) if !age.contains('=') && HeaderValue::from_str(age).is_ok() => None,
            _ => Some(invalid),
        },
    }
}

/// Parses an origin pattern. It has to anchor both ends of the host: `example.com` would otherwise match
/// `example.com.evil.org`.
fn origin(expression: &str) -> Result<Regex, String> {
    if expression.is_empty() {
        return Err(format!("empty value in --cors-allowed-origins, help: {CORS_HELP}"));
    }
    let invalid = |why: String| {
        format!("--cors-allowed-origins has an invalid regular expression: {why}, help: {CORS_HELP}")
    };
    let regex = Regex::new(expression).map_err(|error| invalid(error.to_string()))?;
    let has = |marks: [&str; 2]| marks.iter().any(|mark| expression.contains(mark));
    match has(["^", "//"]) && has(["$", ":"]) {
        true => Ok(regex),
        false => Err(invalid(
            "regular expression does not pin to start/end of host in the origin header".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_certificates_are_read_as_the_reference_reads_them() {
        let check = |text: &str, expected: Result<(&str, &str, &[&str]), &str>| {
            let found = text.parse::<SniCertKey>();
            let expected = expected.map(|(cert, key, names)| SniCertKey {
                cert_file: cert.into(),
                key_file: key.into(),
                names: names.iter().map(|name| (*name).to_owned()).collect(),
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        };
        check("a.crt,a.key", Ok(("a.crt", "a.key", &[])));
        check("a.crt, a.key: *.foo.com ,foo.com", Ok(("a.crt", "a.key", &["*.foo.com", "foo.com"])));
        check("a.crt", Err("expected comma separated certificate and key file paths"));
        check("a,b,c", Err("expected comma separated certificate and key file paths"));
        check("a,b:", Err("empty names list is not allowed"));
    }

    #[tokio::test]
    async fn ports_are_shared_by_those_who_permit_it() {
        let sharing = ServingOptions { permit_port_sharing: true, ..ServingOptions::default() };
        let first = sharing.listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = first.local_addr().unwrap();
        assert!(sharing.listen(address).is_ok());
        assert!(ServingOptions::default().listen(address).is_err());
    }

    #[test]
    fn what_browsers_are_told_is_checked() {
        let check = |change: fn(&mut ServingOptions), expected: Option<&str>| {
            let mut options = ServingOptions::default();
            change(&mut options);
            let error = options.goaway_error().into_iter().chain(options.header_errors()).next();
            match expected {
                None => assert_eq!(error, None),
                Some(part) => {
                    assert!(error.as_deref().is_some_and(|error| error.contains(part)), "{error:?}")
                }
            }
        };
        check(|options| options.goaway_chance = 0.02, None);
        check(|options| options.goaway_chance = 0.03, Some("--goaway-chance can not be"));
        check(
            |options| options.cors_allowed_origins = vec!["a".to_owned(); 2],
            Some("--cors-allowed-origins has"),
        );
        check(|options| options.goaway_chance = f64::NAN, Some("--goaway-chance can not be"));
        check(
            |options| {
                options.strict_transport_security_directives =
                    vec!["max-age=1".to_owned(), "preload".to_owned()]
            },
            None,
        );
        check(
            |options| options.strict_transport_security_directives = vec!["max-age".to_owned()],
            Some("--strict-transport-security-directives invalid"),
        );
        check(
            |options| options.strict_transport_security_directives = vec![" ".to_owned()],
            Some("empty value in strict-transport-security-directives"),
        );
        check(|options| options.cors_allowed_origins = vec!["//example.com(:|$)".to_owned()], None);
        check(
            |options| options.cors_allowed_origins = vec!["example.com".to_owned()],
            Some("does not pin to start/end of host"),
        );
        check(
            |options| options.cors_allowed_origins = vec!["^(".to_owned()],
            Some("invalid regular expression"),
        );
        check(|options| options.cors_allowed_origins = vec![String::new()], Some("empty value in --cors"));
    }
}
