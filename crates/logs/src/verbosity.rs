//! Verbosity: which informational entries are logged.

use parking_lot::RwLock;
use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tracing::{Level, Metadata, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::layer::{Context, Filter};

/// The target of the entry of a request, which is logged at a verbosity of its own.
pub const HTTP: &str = "httplog";

/// The target of spans and of their events, which are exported and not logged.
pub const SPANS: &str = "spans";

/// The verbosity of an informational entry; 0 is always logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verbosity(pub u32);

impl Verbosity {
    /// The verbosity of an event. Kubernetes logs requests at 3 and debugging at 4
    /// (<https://github.com/kubernetes/community/blob/master/contributors/devel/sig-instrumentation/logging.md>);
    /// events of libraries are for those who look into the libraries.
    pub fn of(metadata: &Metadata<'_>) -> Verbosity {
        if metadata.target() == HTTP {
            return Verbosity(3);
        }
        let is_own = metadata.target().starts_with("pintle");
        Verbosity(match *metadata.level() {
            // It warns of frames that any client can send, as many as it likes.
            Level::WARN if metadata.target().starts_with("h2::") => 8,
            Level::ERROR | Level::WARN | Level::INFO => 0,
            Level::DEBUG if is_own => 4,
            Level::TRACE if is_own => 6,
            Level::DEBUG => 8,
            Level::TRACE => 10,
        })
    }
}

/// Verbosities of single source files, as `--vmodule` sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vmodule(Vec<(String, u32)>);

/// A `--vmodule` that is no list of `pattern=N`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidVmodule(String);

impl fmt::Display for InvalidVmodule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for InvalidVmodule {}

impl FromStr for Vmodule {
    type Err = InvalidVmodule;

    fn from_str(text: &str) -> Result<Vmodule, InvalidVmodule> {
        let mut patterns = Vec::new();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let quoted = pintle_go_forms::quote(item);
            let invalid = || InvalidVmodule(format!("{quoted} does not have the pattern=N format"));
            let (pattern, number) = item.split_once('=').ok_or_else(invalid)?;
            if pattern.is_empty() || number.contains('=') {
                return Err(invalid());
            }
            let number = parse_verbosity(number)
                .map_err(|error| InvalidVmodule(format!("parsing verbosity in {quoted}: {error}")))?;
            patterns.push((pattern.to_owned(), number));
        }
        Ok(Vmodule(patterns))
    }
}

impl fmt::Display for Vmodule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (pattern, number)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(formatter, "{comma}{pattern}={number}")?;
        }
        Ok(())
    }
}

impl Vmodule {
    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The verbosity of a source file: that of the first pattern that matches its name without extension, or its path,
    /// if the pattern has a slash.
    fn of(&self, path: &str) -> Option<u32> {
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        let found = self.0.iter().find(|(pattern, _)| {
            glob(pattern.as_bytes(), if pattern.contains('/') { path } else { name }.as_bytes())
        });
        found.map(|(_, number)| *number)
    }
}

/// Whether a pattern matches, as Go's `filepath.Match` has it: `*` stands for any characters but a slash, `?` for one,
/// `[a-z]` and `[^a-z]` for one of a class; a backslash takes the next character as it is. Malformed patterns match nothing.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    // The place after the last star, and where the text after it began: one level of retries is enough.
    let (mut at, mut place, mut star) = (0, 0, None);
    while let Some(byte) = text.get(at) {
        if pattern.get(place) == Some(&b'*') {
            star = Some((place, at));
            place += 1;
            continue;
        }
        match step(pattern.get(place..).unwrap_or_default(), *byte) {
            Some(length) => (at, place) = (at + 1, place + length),
            None => match star {
                Some((of_star, from)) if text.get(from) != Some(&b'/') => {
                    star = Some((of_star, from + 1));
                    (at, place) = (from + 1, of_star + 1);
                }
                _ => return false,
            },
        }
    }
    pattern.get(place..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// The length of the pattern's first element if it matches a character; elements are not `*`.
fn step(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => (byte != b'/').then_some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', class @ ..] => class_step(class, byte).map(|length| length + 1),
        [wanted, ..] => (*wanted == byte && byte != b'\\').then_some(1),
        [] => None,
    }
}

/// The length of a class without its bracket, if it contains a character.
fn class_step(class: &[u8], byte: u8) -> Option<usize> {
    let is_negated = class.first() == Some(&b'^');
    let mut place = usize::from(is_negated);
    let mut is_member = false;
    let begin = place;
    loop {
        if place > begin && class.get(place) == Some(&b']') {
            return (is_member != is_negated).then_some(place + 1);
        }
        let low = bound(class, &mut place)?;
        let mut high = low;
        if class.get(place) == Some(&b'-') {
            place += 1;
            high = bound(class, &mut place)?;
        }
        is_member |= (low..=high).contains(&byte);
    }
}

/// A bound in a class; `None` if the class is malformed.
fn bound(class: &[u8], place: &mut usize) -> Option<u8> {
    let bound = match class.get(*place..)? {
        [b'-' | b']', ..] | [] => return None,
        [b'\\', escaped, ..] => {
            *place += 1;
            *escaped
        }
        [bound, ..] => *bound,
    };
    *place += 1;
    Some(bound)
}

/// Parses a verbosity as Go's `strconv.ParseUint` does, for 31 bits.
///
/// # Errors
/// In Go's words.
pub(crate) fn parse_verbosity(text: &str) -> Result<u32, String> {
    let failed = |why: &str| format!("strconv.ParseUint: parsing {}: {why}", pintle_go_forms::quote(text));
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(failed("invalid syntax"));
    }
    let number = text.parse::<u32>().ok().filter(|number| *number <= i32::MAX as u32);
    number.ok_or_else(|| failed("value out of range"))
}

impl FromStr for Verbosity {
    type Err = String;

    fn from_str(text: &str) -> Result<Verbosity, String> {
        parse_verbosity(text).map(Verbosity)
    }
}

impl Verbosity {
    /// Parses the body of a request that sets the verbosity. The reference reads a number of 32 bits first, and then the
    /// value of its flag.
    ///
    /// # Errors
    /// In the reference's words.
    pub fn of_request(text: &str) -> Result<Verbosity, String> {
        match text.parse() {
            Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_ok() => {
                let quoted = pintle_go_forms::quote(text);
                Err(format!(
                    "failed set klog.logging.verbosity {text}: strconv.ParseInt: parsing {quoted}: value out of range"
                ))
            }
            result => result,
        }
    }
}

/// The verbosity that is in force. It can be changed while the server runs; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Levels(Arc<State>);

#[derive(Debug, Default)]
struct State {
    verbosity: AtomicU32,
    vmodule: RwLock<Vmodule>,
}

impl Levels {
    /// Sets what is logged.
    pub fn set(&self, verbosity: Verbosity, vmodule: Vmodule) {
        *self.0.vmodule.write() = vmodule;
        self.set_verbosity(verbosity);
    }

    /// Sets the verbosity of all files that have none of their own.
    pub fn set_verbosity(&self, verbosity: Verbosity) {
        self.0.verbosity.store(verbosity.0, Ordering::Relaxed);
        // Each call site knows whether its events are wanted.
        tracing::callsite::rebuild_interest_cache();
    }

    /// The verbosity of all files that have none of their own.
    pub fn verbosity(&self) -> Verbosity {
        Verbosity(self.0.verbosity.load(Ordering::Relaxed))
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        // Spans are not logged. Call sites that only ask whether an event would be are no events themselves.
        if metadata.is_span() || metadata.target() == SPANS {
            return false;
        }
        let needed = Verbosity::of(metadata);
        needed <= self.verbosity()
            || metadata.file().is_some_and(|file| {
                self.0.vmodule.read().of(file).is_some_and(|number| needed <= Verbosity(number))
            })
    }
}

impl<S> Filter<S> for Levels {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.wants(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.wants(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let vmodule = self.0.vmodule.read().0.iter().map(|(_, number)| *number).max().unwrap_or_default();
        Some(match self.verbosity().0.max(vmodule) {
            0..=2 => LevelFilter::INFO,
            3..=5 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_files() {
        let check = |vmodule: &str, file: &str, expected: Option<u32>| {
            assert_eq!(vmodule.parse::<Vmodule>().unwrap().of(file), expected, "{vmodule} {file}");
        };
        check("watch=5", "crates/apiserver/src/endpoints/watch.rs", Some(5));
        check("watch=5", "crates/apiserver/src/endpoints/watcher.rs", None);
        check("watch*=5,w?tch=3", "crates/a/src/watcher.rs", Some(5));
        check("w?tch=3,", "crates/a/src/watch.rs", Some(3));
        check("*a*b=3", "crates/a/src/xaayab.rs", Some(3));
        check("crates/*/src/watch=4", "crates/a/src/watch.rs", Some(4));
        check("crates/*=4", "crates/a/src/watch.rs", None);
        check("w[a-c]tch=3", "src/watch.rs", Some(3));
        check("w[b-c]tch=3", "src/watch.rs", None);
        check("w[xyza]*[^a-g]=3", "src/watch.rs", Some(3));
        check("watc[^gh]=3", "src/watch.rs", None);
        check(r"w\atch=3", "src/watch.rs", Some(3));
        check(r"w[\]a]tch=3", "src/watch.rs", Some(3));
        // Malformed patterns match nothing.
        for malformed in
            ["watc[=3", "watc[h=3", "watc[]h]=3", "watc[a-=3", "watc[-h]=3", r"watch\=3", "watc[h-]=3"]
        {
            check(malformed, "src/watch.rs", None);
        }
        check("", "watch.rs", None);
    }

    #[test]
    fn mistakes_are_told_in_the_reference_s_words() {
        let check = |text: &str, expected: &str| {
            assert_eq!(text.parse::<Vmodule>().unwrap_err().to_string(), expected, "{text}");
        };
        check("a", "\"a\" does not have the pattern=N format");
        check("a=x", "parsing verbosity in \"a=x\": strconv.ParseUint: parsing \"x\": invalid syntax");
        assert_eq!(
            parse_verbosity("99999999999"),
            Err("strconv.ParseUint: parsing \"99999999999\": value out of range".to_owned())
        );
        assert_eq!("a=1,b=2,".parse::<Vmodule>().unwrap().to_string(), "a=1,b=2");
    }
}
