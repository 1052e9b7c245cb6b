//! Reads a command line as Go's pflag does, and refuses it in its words.
//!
//! The flags are declared for clap, which also parses their values. pflag differs in syntax (underscores, `-v4`, booleans
//! that take their value only after `=`), so that the arguments are brought into one form first: `--name=value`.

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    error::{ContextKind, ContextValue},
};
use pintle::{OutOfRange, Refused};
use pintle_go_forms::{format_duration, parse_duration, quote};
use std::{any::TypeId, error::Error as _, ffi::OsString, net::IpAddr, path::PathBuf};

/// Parses the arguments behind the command's name. Values that are out of range are left out: all of them are told at once,
/// when the syntax of the others is known to be right.
///
/// # Errors
/// The first error of pflag.
pub(crate) fn parse(
    command: &Command,
    name: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(ArgMatches, Refused), String> {
    let (mut arguments, syntax) = normalized(command, name, arguments);
    let mut refused = Refused::default();
    loop {
        let all = std::iter::once(name).chain(arguments.iter().map(String::as_str));
        let error = match command.clone().try_get_matches_from(all) {
            Ok(matches) => return syntax.map(|()| (matches, refused)),
            Err(error) => error,
        };
        let OutOfRangeValue { flag, value, message } = out_of_range(command, &error)?;
        let given = format!("{flag}={value}");
        let Some(at) = arguments.iter().position(|argument| *argument == given) else { return Err(message) };
        arguments.remove(at);
        // Of a flag with one value the last one counts.
        let long = flag.trim_start_matches('-');
        let is_replaced = arguments.iter().skip(at).any(|argument| argument.starts_with(&format!("{flag}=")))
            && command
                .get_arguments()
                .any(|arg| arg.get_long() == Some(long) && matches!(arg.get_action(), ArgAction::Set));
        if !is_replaced {
            refused.add(long, message);
        }
    }
}

/// Parses the arguments as [`parse`], but leaves out those that are wrong, and returns their errors.
pub(crate) fn parse_all(
    command: &Command,
    name: &str,
    arguments: Vec<OsString>,
) -> ((ArgMatches, Refused), Vec<String>) {
    let (mut right, mut problems) = (Vec::new(), Vec::new());
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let mut flag = vec![argument];
        // A flag without its value is read together with the next argument.
        if let Err(error) = parse(command, name, flag.clone())
            && error.starts_with("flag needs an argument")
        {
            flag.extend(arguments.next());
        }
        match parse(command, name, flag.clone()) {
            Ok(_) => right.extend(flag),
            Err(error) => problems.push(error),
        }
    }
    match parse(command, name, right) {
        Ok(parsed) => (parsed, problems),
        Err(error) => {
            problems.push(error);
            (parse(command, name, []).unwrap_or_default(), problems)
        }
    }
}

/// The arguments as `--name=value`, up to the first one with a wrong syntax. pflag has set the flags before it by then.
fn normalized(
    command: &Command,
    name: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> (Vec<String>, Result<(), String>) {
    let mut flags = Vec::new();
    let arguments = arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned());
    let syntax = normalize(command, name, arguments, &mut flags);
    (flags, syntax)
}

fn normalize(
    command: &Command,
    name: &str,
    mut arguments: impl Iterator<Item = String>,
    flags: &mut Vec<String>,
) -> Result<(), String> {
    let mut positional = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            positional.extend(arguments.by_ref());
        } else if let Some(flag) = argument.strip_prefix("--") {
            let (given, value) = match flag.split_once('=') {
                Some((given, value)) => (given, Some(value.to_owned())),
                None => (flag, None),
            };
            if given.is_empty() || given.starts_with('-') {
                return Err(format!("bad flag syntax: {argument}"));
            }
            let long = given.replace('_', "-");
            let found = command.get_arguments().find(|arg| arg.get_long() == Some(&long));
            let arg = found.ok_or_else(|| format!("unknown flag: --{given}"))?;
            let value = match value.or_else(|| implied(arg)) {
                Some(value) => value,
                None => arguments.next().ok_or_else(|| format!("flag needs an argument: --{given}"))?,
            };
            push(flags, arg, &long, &value);
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            shorthands(command, letters, &mut arguments, flags)?;
        } else {
            positional.push(argument);
        }
    }
    match positional.iter().any(|argument| !argument.is_empty()) {
        false => Ok(()),
        true => {
            let list: Vec<String> = positional.iter().map(|argument| quote(argument)).collect();
            Err(format!("{} does not take any arguments, got [{}]", quote(name), list.join(" ")))
        }
    }
}

/// Flags whose empty value stands for the default, besides those of paths and addresses.
const EMPTY_IS_DEFAULT: [&str; 6] = [
    "endpoint-reconciler-type",
    "service-account-jwks-uri",
    "service-cluster-ip-range",
    "service-node-port-range",
    "storage-backend",
    "storage-media-type",
];

/// Adds a flag. The empty text is the zero value of paths and addresses: the flag is unset, whatever was given before.
fn push(flags: &mut Vec<String>, arg: &Arg, long: &str, value: &str) {
    let flag = format!("--{long}=");
    let value_type = arg.get_value_parser().type_id();
    let is_path_or_address = value_type == TypeId::of::<PathBuf>() || value_type == TypeId::of::<IpAddr>();
    let is_single = matches!(arg.get_action(), ArgAction::Set);
    let has_default = is_path_or_address || EMPTY_IS_DEFAULT.contains(&long);
    match value.is_empty() && has_default && is_single {
        true => flags.retain(|given| !given.starts_with(&flag)),
        false => flags.push(flag + value),
    }
}

/// Reads the flags of `-v4`, `-v=4` or `-v 4`.
fn shorthands(
    command: &Command,
    letters: &str,
    arguments: &mut impl Iterator<Item = String>,
    flags: &mut Vec<String>,
) -> Result<(), String> {
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let found = command.get_arguments().find(|arg| arg.get_short() == Some(letter));
        let arg = found.ok_or_else(|| format!("unknown shorthand flag: '{letter}' in -{letters}"))?;
        let long = arg.get_long().unwrap_or_default();
        let behind = rest.as_str();
        if let Some(value) = behind.strip_prefix('=') {
            flags.push(format!("--{long}={value}"));
            return Ok(());
        }
        if let Some(value) = implied(arg) {
            flags.push(format!("--{long}={value}"));
            continue;
        }
        let value = match behind.is_empty() {
            false => Some(behind.to_owned()),
            true => arguments.next(),
        };
        let value =
            value.ok_or_else(|| format!("flag needs an argument: {} in -{letters}", quote_rune(letter)))?;
        flags.push(format!("--{long}={value}"));
        return Ok(());
    }
    Ok(())
}

fn quote_rune(letter: char) -> String {
    format!("'{letter}'")
}

/// The value of a flag without `=`; `None` when the next argument is the value.
fn implied(arg: &Arg) -> Option<String> {
    let takes_none = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    takes_none.then(|| "true".to_owned())
}

/// A value that is refused when the syntax of all flags is known.
struct OutOfRangeValue<'a> {
    flag: &'a str,
    value: &'a str,
    message: String,
}

/// The value that is out of range, or else the error in pflag's words.
fn out_of_range<'a>(command: &Command, error: &'a clap::Error) -> Result<OutOfRangeValue<'a>, String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let shown = context(ContextKind::InvalidArg);
    let flag = shown.split([' ', '=', '[']).next().unwrap_or(shown);
    let value = context(ContextKind::InvalidValue);
    let message = match error.source() {
        Some(source) => match source.downcast_ref::<OutOfRange>() {
            Some(OutOfRange::Negative) => negative(flag, value),
            Some(OutOfRange::Message(message)) => message.clone(),
            None => {
                let shown = quote(&with_shorthand(command, flag));
                return Err(format!("invalid argument {} for {shown} flag: {source}", quote(value)));
            }
        },
        None => return Err(error.to_string().trim_end().to_owned()),
    };
    Ok(OutOfRangeValue { flag, value, message })
}

/// A flag as errors name it: `-v, --v`, if it has a shorthand.
fn with_shorthand(command: &Command, flag: &str) -> String {
    let arg = command.get_arguments().find(|arg| arg.get_long() == flag.strip_prefix("--"));
    match arg.and_then(Arg::get_short) {
        Some(letter) => format!("-{letter}, {flag}"),
        None => flag.to_owned(),
    }
}

/// The error of a negative value.
fn negative(flag: &str, value: &str) -> String {
    match flag {
        "--log-flush-frequency" => {
            let value = parse_duration(value).map_or_else(|_| value.to_owned(), format_duration);
            format!("flushFrequency: Invalid value: {}: Must be greater than zero", quote(&value))
        }
        "--service-account-max-token-expiration" => {
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds".to_owned()
        }
        "--coordinated-leadership-lease-duration" => {
            format!("{flag} must be greater than --coordinated-leadership-renew-deadline")
        }
        "--coordinated-leadership-renew-deadline" => {
            format!("{flag} must be greater than --coordinated-leadership-retry-period")
        }
        "--livez-grace-period" => format!("{flag} can not be a negative value"),
        "--shutdown-watch-termination-grace-period" => {
            "shutdown-watch-termination-grace-period, if provided, can not be a negative value".to_owned()
        }
        _ => format!("{flag} can not be negative value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;

    fn read(arguments: &[&str]) -> Result<ArgMatches, String> {
        let parsed = parse(&command(), "kube-apiserver", arguments.iter().map(OsString::from));
        parsed.map(|(matches, _)| matches)
    }

    #[test]
    fn syntax_is_that_of_the_reference() {
        let seconds = |arguments: &[&str]| {
            let matches = read(arguments).unwrap();
            matches.get_one::<std::time::Duration>("request-timeout").unwrap().as_secs()
        };
        assert_eq!(seconds(&["--request-timeout=5s"]), 5);
        assert_eq!(seconds(&["--request_timeout", "5s"]), 5);
        assert_eq!(seconds(&["--request-timeout=5s", "--request-timeout=1m"]), 60, "the last value counts");
        let anonymous =
            |arguments: &[&str]| read(arguments).unwrap().get_one::<bool>("anonymous-auth").copied();
        for (argument, expected) in [("", true), ("=T", true), ("=1", true), ("=FALSE", false), ("=0", false)]
        {
            assert_eq!(anonymous(&[&format!("--anonymous_auth{argument}")]), Some(expected), "{argument}");
        }
        for argument in [&["-v", "4"] as &[&str], &["-v=4"], &["-v4"], &["--v=4"], &["--v", "4"]] {
            assert!(read(argument).is_ok(), "{argument:?}");
        }
        assert!(read(&["--service-account-issuer=a", "--service_account_issuer=b", ""]).is_ok());
        let unset = read(&["--client-ca-file=a", "--client-ca-file=", "--advertise-address="]).unwrap();
        assert!(!unset.contains_id("client-ca-file") && !unset.contains_id("advertise-address"));
        for name in EMPTY_IS_DEFAULT {
            assert!(!read(&[&format!("--{name}=")]).unwrap().contains_id(name), "{name}");
        }
        assert!(read(&["--client-ca-file=", "--client-ca-file=b"]).unwrap().contains_id("client-ca-file"));
    }

    #[test]
    fn all_mistakes_are_found() {
        let arguments = [
            "--no-such",
            "--secure-port",
            "70000",
            "--v=x",
            "extra",
            "--etcd-prefix",
            "/a",
            "--bind-address",
        ];
        let ((matches, refused), problems) =
            parse_all(&command(), "check", arguments.map(OsString::from).into());
        assert_eq!(matches.get_one::<String>("etcd-prefix").map(String::as_str), Some("/a"));
        let begins = [
            "unknown flag: --no-such",
            "invalid argument \"x\" for \"-v, --v\" flag",
            "\"check\" does not take any arguments, got [\"extra\"]",
            "flag needs an argument: --bind-address",
        ];
        assert_eq!(problems.len(), begins.len(), "{problems:?}");
        for (problem, begin) in problems.iter().zip(begins) {
            assert!(problem.starts_with(begin), "{problem}");
        }
        let message =
            "--secure-port 70000 must be between 1 and 65535, inclusive. It cannot be turned off with 0";
        assert_eq!(refused, refusal("secure-port", message));
    }

    fn refusal(flag: &str, message: &str) -> Refused {
        let mut refused = Refused::default();
        refused.add(flag, message.to_owned());
        refused
    }

    #[test]
    fn mistakes_have_the_words_of_the_reference() {
        let check = |arguments: &[&str], expected: &str| {
            assert_eq!(read(arguments).unwrap_err(), expected, "{arguments:?}");
        };
        check(&["--no_such"], "unknown flag: --no_such");
        check(&["-q"], "unknown shorthand flag: 'q' in -q");
        check(&["--secure-port"], "flag needs an argument: --secure-port");
        check(&["-v"], "flag needs an argument: 'v' in -v");
        check(&["--=x"], "bad flag syntax: --=x");
        check(&["foo", "--v=1"], "\"kube-apiserver\" does not take any arguments, got [\"foo\"]");
        check(
            &["--secure-port=x"],
            "invalid argument \"x\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
        );
        check(
            &["--anonymous-auth=maybe"],
            "invalid argument \"maybe\" for \"--anonymous-auth\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        );
        check(
            &["--request-timeout=soon"],
            "invalid argument \"soon\" for \"--request-timeout\" flag: time: invalid duration \"soon\"",
        );
        check(
            &["--bind-address=x"],
            "invalid argument \"x\" for \"--bind-address\" flag: failed to parse IP: \"x\"",
        );
        check(
            &["--version=v1.35.0"],
            "invalid argument \"v1.35.0\" for \"--version\" flag: version \"v1.35.0\" must match major/minor/patch of default version \
             \"v1.36.2\"",
        );
        check(
            &["--max-requests-inflight=99999999999999999999"],
            "invalid argument \"99999999999999999999\" for \"--max-requests-inflight\" flag: strconv.ParseInt: parsing \
             \"99999999999999999999\": value out of range",
        );
        check(
            &["--secure-port=70000", "--v=x", "--no-such"],
            "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"x\": invalid syntax",
        );
    }

    #[test]
    fn values_out_of_range_are_left_out_and_told() {
        let refused = |arguments: &[&str]| {
            parse(&command(), "kube-apiserver", arguments.iter().map(OsString::from)).unwrap().1
        };
        let check = |argument: &str, flag: &str, expected: &str| {
            assert_eq!(refused(&[argument]), refusal(flag, expected), "{argument}");
        };
        check("--request_timeout=-1s", "request-timeout", "--request-timeout can not be negative value");
        check(
            "--max-requests-inflight=-1",
            "max-requests-inflight",
            "--max-requests-inflight can not be negative value",
        );
        check(
            "--livez-grace-period=-1s",
            "livez-grace-period",
            "--livez-grace-period can not be a negative value",
        );
        let mut several = refusal("livez-grace-period", "--livez-grace-period can not be a negative value");
        several.add("request-timeout", "--request-timeout can not be negative value".to_owned());
        assert_eq!(refused(&["--request-timeout=-1s", "--v=1", "--livez-grace-period=-1s"]), several);
        let corrected = ["--request-timeout=-1s", "--request-timeout=-2s", "--request-timeout=1s"];
        assert_eq!(refused(&corrected), Refused::default());
        let wrong_once = ["--watch-cache-sizes=pods#-1", "--watch-cache-sizes=pods#0"];
        let message = "watch cache size cannot be negative: pods#-1";
        assert_eq!(refused(&wrong_once), refusal("watch-cache-sizes", message));
    }
}
