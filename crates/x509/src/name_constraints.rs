//! The names for which an authority may issue certificates (RFC 5280, section 4.2.1.10).

use crate::{
    VerifyError,
    names::{Names, address},
};
use pintle_go_forms::quote;
use std::net::IpAddr;
use x509_parser::{
    asn1_rs::{Any, FromDer, Header},
    extensions::{GeneralName, GeneralSubtree, NameConstraints as Parsed},
};

/// The name constraints of an authority.
#[derive(Debug)]
pub(crate) struct NameConstraints<'a> {
    permitted: Subtrees<'a>,
    excluded: Subtrees<'a>,
}

/// Names by type. A domain is that of itself and everything below it; with a dot before it, of what is below.
#[derive(Debug, Default)]
struct Subtrees<'a> {
    domains: Vec<&'a str>,
    /// Domains of mailboxes, or whole mailboxes.
    emails: Vec<&'a str>,
    /// The domains of hosts.
    uris: Vec<&'a str>,
    networks: Vec<Network>,
}

#[derive(Debug)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

impl<'a> NameConstraints<'a> {
    /// The constraints of an extension, and whether all of them are of known types.
    ///
    /// # Errors
    /// [`VerifyError::Malformed`], also for subtrees that the parser left out.
    pub(crate) fn read(
        parsed: &Parsed<'a>,
        value: &[u8],
    ) -> Result<(NameConstraints<'a>, bool), VerifyError> {
        let present = (parsed.permitted_subtrees.is_some(), parsed.excluded_subtrees.is_some());
        if present == (false, false) || present_lists(value) != Some(present) {
            return Err(VerifyError::Malformed);
        }
        let mut is_known = true;
        let mut read = |list: &Option<Vec<GeneralSubtree<'a>>>| {
            Subtrees::read(list.as_deref().unwrap_or_default(), &mut is_known)
        };
        let (permitted, excluded) = (read(&parsed.permitted_subtrees)?, read(&parsed.excluded_subtrees)?);
        Ok((NameConstraints { permitted, excluded }, is_known))
    }

    /// Checks the names of a certificate below.
    ///
    /// # Errors
    /// Which name is not permitted, and why.
    pub(crate) fn check(&self, names: &Names<'_>) -> Result<(), String> {
        // Names that cannot be compared are refused first.
        let hosts = names.uris.iter().map(|uri| Ok((uri, host_of(uri)?)));
        let hosts = hosts.collect::<Result<Vec<_>, String>>()?;
        let mailboxes = names.emails.iter().map(|email| {
            let unreadable = || format!("cannot parse rfc822Name {}", quote(email));
            Ok((email, mailbox(email).ok_or_else(unreadable)?))
        });
        let mailboxes = mailboxes.collect::<Result<Vec<_>, String>>()?;
        for address in &names.addresses {
            let find = |networks: &[Network]| {
                networks.iter().find(|network| network.has(*address)).map(Network::text)
            };
            let lists = (self.permitted.networks.as_slice(), self.excluded.networks.as_slice());
            decide("IP address", &address.to_string(), lists, find)?;
        }
        for name in &names.dns {
            if !is_domain(name) {
                return Err(format!("x509: cannot parse dnsName {}", quote(name)));
            }
            let lists = (self.permitted.domains.as_slice(), self.excluded.domains.as_slice());
            decide("DNS name", name, lists, |domains| in_domains(name, domains))?;
            // A wildcard stands for an excluded name as well.
            let below =
                |name: &'_ str| name.find('.').and_then(|dot| name.get(dot..)).map(str::to_ascii_lowercase);
            if name.starts_with('*')
                && let Some(rest) = below(name)
                && let Some(domain) =
                    self.excluded.domains.iter().find(|domain| below(domain).as_ref() == Some(&rest))
            {
                return Err(excluded_by("DNS name", name, domain));
            }
        }
        for (uri, host) in hosts {
            let lists = (self.permitted.uris.as_slice(), self.excluded.uris.as_slice());
            decide("URI", uri, lists, |domains| in_domains(host, domains))?;
        }
        for (email, (local, domain)) in mailboxes {
            let find = |list: &[&str]| {
                let (whole, domains): (Vec<&str>, Vec<&str>) = list.iter().partition(|one| one.contains('@'));
                let same = |one: &&&str| {
                    mailbox(one).is_some_and(|(own, at)| own == local && at.eq_ignore_ascii_case(domain))
                };
                let found = whole.iter().find(same).map(|one| (*one).to_owned());
                found.or_else(|| in_domains(domain, &domains))
            };
            decide("email address", email, (&self.permitted.emails, &self.excluded.emails), find)?;
        }
        Ok(())
    }
}

/// Which of the two lists an extension has; `None` if it has anything else. The parser leaves a list out that it cannot
/// read.
fn present_lists(value: &[u8]) -> Option<(bool, bool)> {
    let (rest, all) = Any::from_der(value).ok()?;
    let (mut left, mut present) = (all.data, (false, false));
    while !left.is_empty() {
        let (after, header) = Header::from_der(left).ok()?;
        let length = header.length().definite().ok()?;
        left = after.get(length..)?;
        match (header.is_contextspecific(), header.tag().0) {
            (true, 0) if present == (false, false) => present.0 = true,
            (true, 1) if !present.1 => present.1 = true,
            _ => return None,
        }
    }
    rest.is_empty().then_some(present)
}

impl<'a> Subtrees<'a> {
    fn read(list: &[GeneralSubtree<'a>], is_known: &mut bool) -> Result<Subtrees<'a>, VerifyError> {
        let mut subtrees = Subtrees::default();
        for subtree in list {
            match &subtree.base {
                GeneralName::DNSName(domain) if is_constraint(domain) => subtrees.domains.push(domain),
                GeneralName::RFC822Name(one) if one.contains('@') && mailbox(one).is_some() => {
                    subtrees.emails.push(one);
                }
                GeneralName::RFC822Name(domain) if !domain.contains('@') && is_constraint(domain) => {
                    subtrees.emails.push(domain);
                }
                GeneralName::URI(domain) if domain.parse::<IpAddr>().is_err() && is_constraint(domain) => {
                    subtrees.uris.push(domain);
                }
                GeneralName::IPAddress(bytes) => {
                    subtrees.networks.push(Network::read(bytes).ok_or(VerifyError::Malformed)?);
                }
                GeneralName::DNSName(_)
                | GeneralName::RFC822Name(_)
                | GeneralName::URI(_)
                | GeneralName::Invalid(..) => return Err(VerifyError::Malformed),
                _ => *is_known = false,
            }
        }
        Ok(subtrees)
    }
}

impl Network {
    /// Reads an address and a mask of the same length.
    fn read(bytes: &[u8]) -> Option<Network> {
        let (base, mask) = bytes.split_at_checked(bytes.len() / 2)?;
        let base = address(base)?;
        let bits = match (base, address(mask)?) {
            (IpAddr::V4(_), IpAddr::V4(mask)) => u128::from(mask.to_bits()) << 96,
            (IpAddr::V6(_), IpAddr::V6(mask)) => mask.to_bits(),
            _ => return None,
        };
        let prefix = bits.leading_ones();
        let is_prefix = bits.count_ones() == prefix;
        is_prefix.then_some(Network { address: base, prefix })
    }

    fn has(&self, address: IpAddr) -> bool {
        let cut = |bits: u128| bits.checked_shr(128 - self.prefix).unwrap_or(0);
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                cut(u128::from(own.to_bits()) << 96) == cut(u128::from(other.to_bits()) << 96)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => cut(own.to_bits()) == cut(other.to_bits()),
            _ => false,
        }
    }

    fn text(&self) -> String {
        format!("{}/{}", self.address, self.prefix)
    }
}

/// Decides about a name: it is in a permitted subtree, if there is one of its type, and in no excluded one.
fn decide<T>(
    what: &str,
    name: &str,
    (permitted, excluded): (&[T], &[T]),
    find: impl Fn(&[T]) -> Option<String>,
) -> Result<(), String> {
    if !permitted.is_empty() && find(permitted).is_none() {
        return Err(format!("{what} {} is not permitted by any constraint", quote(name)));
    }
    match find(excluded) {
        Some(constraint) => Err(excluded_by(what, name, &constraint)),
        None => Ok(()),
    }
}

fn excluded_by(what: &str, name: &str, constraint: &str) -> String {
    format!("{what} {} is excluded by constraint {}", quote(name), quote(constraint))
}

/// The first of the domains that has a name.
fn in_domains(name: &str, domains: &[&str]) -> Option<String> {
    let has = |domain: &&&str| {
        if domain.is_empty() {
            return true;
        }
        let Some(start) = name.len().checked_sub(domain.len()) else { return false };
        let (Some(before), Some(end)) = (name.get(..start), name.get(start..)) else { return false };
        end.eq_ignore_ascii_case(domain)
            && (before.is_empty() || before.ends_with('.') || domain.starts_with('.'))
    };
    domains.iter().find(has).map(|domain| (*domain).to_owned())
}

/// Whether a text is a domain name, in the widest sense: labels of printable ASCII.
fn is_domain(name: &str) -> bool {
    name.is_empty()
        || name.split('.').all(|label| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_graphic()))
}

fn is_constraint(domain: &str) -> bool {
    match domain.strip_prefix('.') {
        Some(rest) => !rest.is_empty() && is_domain(rest),
        None => is_domain(domain),
    }
}

/// The local part and the domain of a mailbox without quotes.
fn mailbox(email: &str) -> Option<(&str, &str)> {
    let (local, domain) = email.rsplit_once('@')?;
    let is_atom = |part: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    (local.split('.').all(is_atom) && is_domain(domain)).then_some((local, domain))
}

/// The host of a URI, which must be a domain name.
fn host_of(uri: &str) -> Result<&str, String> {
    let authority = uri.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.starts_with('[') || host.parse::<IpAddr>().is_ok() {
        return Err(format!("URI with IP ({}) cannot be matched against constraints", quote(uri)));
    }
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    if host.parse::<IpAddr>().is_ok() {
        return Err(format!("URI with IP ({}) cannot be matched against constraints", quote(uri)));
    }
    match host.is_empty() || !is_domain(host) {
        true => Err(format!("URI with empty host ({}) cannot be matched against constraints", quote(uri))),
        false => Ok(host),
    }
}
