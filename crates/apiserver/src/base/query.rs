//! Parses query strings.

use percent_encoding::percent_decode_str;

/// The parameters of a query string, in order. A pair with a malformed escape is skipped, as by Go's parser.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part of a URL after `?`.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Query(
            pairs
                .filter_map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Some((unescape(name)?, unescape(value)?))
                })
                .collect(),
        )
    }

    /// The first value of a parameter.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is true unless it is absent, empty, `0` or `false`.
    pub fn flag(&self, name: &str) -> bool {
        match self.first(name) {
            None => false,
            Some(value) => !(value == "0" || value.eq_ignore_ascii_case("false")),
        }
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn unescape(text: &str) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let broken = bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%' && !bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    if broken {
        return None;
    }
    let text = text.replace('+', " ");
    Some(percent_decode_str(&text).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn broken_pairs_are_left_out() {
        let query = Query::parse("a=1&b=%zz&c=x+y%3D&d&a=2");
        let pairs: Vec<_> = query.pairs().collect();
        assert_eq!(pairs, [("a", "1"), ("c", "x y="), ("d", ""), ("a", "2")]);
        assert_eq!(query.first("a"), Some("1"));
        assert!(Query::parse("watch=2").flag("watch"));
        assert!(!Query::parse("watch=False").flag("watch"));
        assert!(Query::parse("watch").flag("watch"));
    }
}
