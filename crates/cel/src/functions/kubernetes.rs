//! The types of Kubernetes' libraries: URLs, addresses, quantities, formats, versions
//! (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-cel-libraries>).

use super::ip::{is_global_unicast, is_link_local_multicast, is_link_local_unicast, parse_cidr, parse_ip};
use super::{Function, NamedFormat, Semver, no_such_overload};
use crate::EvaluationError;
use crate::value::{Key, Map, Opaque, Text, Value};
use indexmap::IndexMap;
use pintle_go_forms::{Cidr, Url};
use pintle_machinery::Quantity;
use pintle_machinery::quantity::Format;
use std::cmp::Ordering;
use std::net::IpAddr;

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn lookup(name: &str) -> Option<Function> {
    if let Some(format) = name.strip_prefix("format.").filter(|name| *name != "named") {
        return named_format_function(format);
    }
    urls(name).or_else(|| addresses(name)).or_else(|| quantities(name)).or_else(|| versions(name)).or(
        match name {
            "format.named" => Some(|args| match args {
                [Value::String(name)] => Ok(match NamedFormat::find(name) {
                    Some(format) => Value::some(Value::from(Opaque::Format(format))),
                    None => Value::Optional(None),
                }),
                args => Err(no_such_overload("format.named", args)),
            }),
            "validate" => Some(|args| match (opaque(args.first()), args.get(1)) {
                (Some(Opaque::Format(format)), Some(Value::String(text))) => {
                    let problems = format.validate(text);
                    Ok(match problems.is_empty() {
                        true => Value::Optional(None),
                        false => Value::some(Value::from(
                            problems.into_iter().map(Value::from).collect::<Vec<_>>(),
                        )),
                    })
                }
                _ => Err(no_such_overload("validate", args)),
            }),
            _ => None,
        },
    )
}

/// `format.dns1123Label()` and similar functions. Functions have no state, so each format has its own.
fn named_format_function(name: &str) -> Option<Function> {
    macro_rules! constants {
        ($($name:literal),*) => {
            match name {
                $($name => Some(|_| NamedFormat::find($name)
                    .map(|format| Value::from(Opaque::Format(format)))
                    .ok_or(EvaluationError::NO_SUCH_OVERLOAD)),)*
                _ => None,
            }
        };
    }
    constants!(
        "dns1123Label",
        "dns1123Subdomain",
        "dns1035Label",
        "qualifiedName",
        "dns1123LabelPrefix",
        "dns1123SubdomainPrefix",
        "dns1035LabelPrefix",
        "labelValue",
        "uri",
        "uuid",
        "byte",
        "date",
        "datetime"
    )
}

fn opaque<'v>(value: Option<&'v Value<'_>>) -> Option<&'v Opaque> {
    match value {
        Some(Value::Opaque(opaque)) => Some(opaque),
        _ => None,
    }
}

fn quantity<'v>(value: Option<&'v Value<'_>>) -> Option<&'v Quantity> {
    match opaque(value) {
        Some(Opaque::Quantity(quantity) | Opaque::ComputedQuantity(quantity)) => Some(quantity),
        _ => None,
    }
}

fn urls(name: &str) -> Option<Function> {
    fn part<'a>(name: &str, args: &mut [Value<'a>], part: fn(&Url) -> Value<'a>) -> Outcome<'a> {
        match (opaque(args.first()), args.len()) {
            (Some(Opaque::Url(url)), 1) => Ok(part(url)),
            _ => Err(no_such_overload(name, args)),
        }
    }
    Some(match name {
        "url" => |args| match args {
            [Value::String(text)] => Ok(Value::from(Opaque::Url(parse_url(text)?))),
            args => Err(no_such_overload("url", args)),
        },
        "isURL" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(Url::parse_request_uri(text).is_ok())),
            args => Err(no_such_overload("isURL", args)),
        },
        "getScheme" => |args| part("getScheme", args, |url| Value::from(url.scheme().to_owned())),
        "getHost" => |args| part("getHost", args, |url| Value::from(url.host())),
        "getHostname" => |args| part("getHostname", args, |url| Value::from(url.hostname())),
        "getPort" => |args| part("getPort", args, |url| Value::from(url.port())),
        "getEscapedPath" => |args| part("getEscapedPath", args, |url| Value::from(url.escaped_path())),
        "getQuery" => |args| {
            part("getQuery", args, |url| {
                let entries: IndexMap<_, _> = url
                    .query()
                    .into_iter()
                    .map(|(name, values)| {
                        let values: Vec<_> = values.into_iter().map(Value::from).collect();
                        (Key::String(Text::from(name)), Value::from(values))
                    })
                    .collect();
                Value::Map(Map::from(entries))
            })
        },
        _ => return None,
    })
}

/// Parses a URL as `url()` does: it must be a request URI, from which a fragment is then split.
fn parse_url(text: &str) -> Result<Url, EvaluationError> {
    Url::parse_request_uri(text).and_then(|_| Url::parse(text)).map_err(|error| {
        EvaluationError::failed(format!("URL parse error during conversion from string: {error}"))
    })
}

fn addresses(name: &str) -> Option<Function> {
    fn of_ip<'a>(name: &str, args: &mut [Value<'a>], part: fn(IpAddr) -> Value<'a>) -> Outcome<'a> {
        match (opaque(args.first()), args.len()) {
            (Some(Opaque::Ip(ip)), 1) => Ok(part(*ip)),
            _ => Err(no_such_overload(name, args)),
        }
    }
    fn of_cidr<'a>(name: &str, args: &mut [Value<'a>], part: fn(Cidr) -> Value<'a>) -> Outcome<'a> {
        match (opaque(args.first()), args.len()) {
            (Some(Opaque::Cidr(cidr)), 1) => Ok(part(*cidr)),
            _ => Err(no_such_overload(name, args)),
        }
    }
    Some(match name {
        "ip" => |args| match args {
            [Value::String(text)] => Ok(Value::from(Opaque::Ip(parse_ip(text)?))),
            args => of_cidr("ip", args, |cidr| Value::from(Opaque::Ip(cidr.address))),
        },
        "isIP" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
            args => Err(no_such_overload("isIP", args)),
        },
        "ip.isCanonical" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text)?.to_string() == text.as_str())),
            args => Err(no_such_overload("ip.isCanonical", args)),
        },
        "family" => |args| of_ip("family", args, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => |args| of_ip("isUnspecified", args, |ip| Value::Bool(ip.is_unspecified())),
        "isLoopback" => |args| of_ip("isLoopback", args, |ip| Value::Bool(ip.is_loopback())),
        "isLinkLocalMulticast" => {
            |args| of_ip("isLinkLocalMulticast", args, |ip| Value::Bool(is_link_local_multicast(ip)))
        }
        "isLinkLocalUnicast" => {
            |args| of_ip("isLinkLocalUnicast", args, |ip| Value::Bool(is_link_local_unicast(ip)))
        }
        "isGlobalUnicast" => |args| of_ip("isGlobalUnicast", args, |ip| Value::Bool(is_global_unicast(ip))),
        "cidr" => |args| match args {
            [Value::String(text)] => Ok(Value::from(Opaque::Cidr(parse_cidr(text)?))),
            args => Err(no_such_overload("cidr", args)),
        },
        "isCIDR" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse_cidr(text).is_ok())),
            args => Err(no_such_overload("isCIDR", args)),
        },
        "prefixLength" => |args| of_cidr("prefixLength", args, |cidr| Value::Int(cidr.prefix_length.into())),
        "masked" => |args| of_cidr("masked", args, |cidr| Value::from(Opaque::Cidr(cidr.masked()))),
        "containsIP" => |args| match (opaque(args.first()), args.get(1)) {
            // A text that is not an address is reported as an argument of the wrong type.
            (Some(Opaque::Cidr(cidr)), Some(Value::String(text))) => match parse_ip(text) {
                Ok(ip) => Ok(Value::Bool(cidr.contains(ip))),
                Err(_) => Err(EvaluationError::NO_SUCH_OVERLOAD),
            },
            (Some(Opaque::Cidr(cidr)), other) => match opaque(other) {
                Some(Opaque::Ip(ip)) => Ok(Value::Bool(cidr.contains(*ip))),
                _ => Err(no_such_overload("containsIP", args)),
            },
            _ => Err(no_such_overload("containsIP", args)),
        },
        "containsCIDR" => |args| match (opaque(args.first()), args.get(1)) {
            (Some(Opaque::Cidr(cidr)), Some(Value::String(text))) => {
                Ok(Value::Bool(cidr.contains_cidr(parse_cidr(text)?)))
            }
            (Some(Opaque::Cidr(cidr)), other) => match opaque(other) {
                Some(Opaque::Cidr(other)) => Ok(Value::Bool(cidr.contains_cidr(*other))),
                _ => Err(no_such_overload("containsCIDR", args)),
            },
            _ => Err(no_such_overload("containsCIDR", args)),
        },
        _ => return None,
    })
}

fn quantities(name: &str) -> Option<Function> {
    fn of<'a>(name: &str, args: &mut [Value<'a>], part: fn(&Quantity) -> Outcome<'a>) -> Outcome<'a> {
        match (quantity(args.first()), args.len()) {
            (Some(quantity), 1) => part(quantity),
            _ => Err(no_such_overload(name, args)),
        }
    }
    fn with<'a>(name: &str, args: &mut [Value<'a>], change: fn(&mut Quantity, &Quantity)) -> Outcome<'a> {
        let (Some(quantity), Some(other)) = (quantity(args.first()), args.get(1)) else {
            return Err(no_such_overload(name, args));
        };
        let mut quantity = quantity.clone();
        match (other, self::quantity(Some(other))) {
            (Value::Int(other), _) => change(&mut quantity, &Quantity::new(*other, Format::DecimalExponent)),
            (_, Some(other)) => change(&mut quantity, other),
            _ => return Err(no_such_overload(name, args)),
        }
        Ok(Value::from(Opaque::ComputedQuantity(quantity)))
    }
    Some(match name {
        "quantity" => |args| match args {
            [Value::String(text)] => match Quantity::parse(text) {
                Ok(quantity) => Ok(Value::from(Opaque::Quantity(quantity))),
                Err(error) => Err(EvaluationError::failed(error.to_string())),
            },
            args => Err(no_such_overload("quantity", args)),
        },
        "isQuantity" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
            args => Err(no_such_overload("isQuantity", args)),
        },
        "sign" => |args| of("sign", args, |quantity| Ok(Value::Int(quantity.sign().into()))),
        "asInteger" => |args| {
            of("asInteger", args, |quantity| {
                quantity.as_i64().map(Value::Int).ok_or_else(|| "cannot convert value to integer".into())
            })
        },
        "isInteger" => |args| of("isInteger", args, |quantity| Ok(Value::Bool(quantity.as_i64().is_some()))),
        "asApproximateFloat" => {
            |args| of("asApproximateFloat", args, |quantity| Ok(Value::Double(quantity.as_approximate_f64())))
        }
        "add" => |args| with("add", args, Quantity::add),
        "sub" => |args| with("sub", args, Quantity::sub),
        _ => return None,
    })
}

/// Functions on versions, and comparisons of versions and quantities.
fn versions(name: &str) -> Option<Function> {
    fn compare<'a>(name: &str, args: &mut [Value<'a>], result: fn(Ordering) -> Value<'a>) -> Outcome<'a> {
        if let (Some(one), Some(other)) = (quantity(args.first()), quantity(args.get(1))) {
            return Ok(result(one.cmp(other)));
        }
        match (opaque(args.first()), opaque(args.get(1))) {
            (Some(Opaque::Semver(one)), Some(Opaque::Semver(other))) => Ok(result(one.compare(other))),
            _ => Err(no_such_overload(name, args)),
        }
    }
    fn of<'a>(name: &str, args: &mut [Value<'a>], part: fn(&Semver) -> i64) -> Outcome<'a> {
        match (opaque(args.first()), args.len()) {
            (Some(Opaque::Semver(version)), 1) => Ok(Value::Int(part(version))),
            _ => Err(no_such_overload(name, args)),
        }
    }
    fn parse(args: &[Value<'_>]) -> Option<Result<Semver, EvaluationError>> {
        match args {
            [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Some(Semver::parse(text)),
            [Value::String(text), Value::Bool(true)] => Some(Semver::parse_lenient(text)),
            _ => None,
        }
    }
    Some(match name {
        "semver" => |args| match parse(args) {
            Some(version) => Ok(Value::from(Opaque::Semver(version?))),
            None => Err(no_such_overload("semver", args)),
        },
        "isSemver" => |args| match parse(args) {
            Some(version) => Ok(Value::Bool(version.is_ok())),
            None => Err(no_such_overload("isSemver", args)),
        },
        "major" => |args| of("major", args, Semver::major),
        "minor" => |args| of("minor", args, Semver::minor),
        "patch" => |args| of("patch", args, Semver::patch),
        "isGreaterThan" => |args| compare("isGreaterThan", args, |order| Value::Bool(order.is_gt())),
        "isLessThan" => |args| compare("isLessThan", args, |order| Value::Bool(order.is_lt())),
        "compareTo" => |args| compare("compareTo", args, |order| Value::Int(order as i64)),
        _ => return None,
    })
}
