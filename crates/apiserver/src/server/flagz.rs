//! `/flagz`: the flags of the server, with their values
//! (<https://kubernetes.io/docs/reference/instrumentation/zpages/>).

use super::zpage::{Contents, ZPage};
use crate::base::{negotiation::MediaTypes, request::Request, response::Response};
use pintle_machinery::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

/// The values of all flags by name, also of those that were not given.
pub type FlagValues = Arc<BTreeMap<String, String>>;

const PAGE: ZPage = ZPage { kind: "Flagz", name: "flagz" };

/// Answers a request.
pub(super) fn serve(flags: &FlagValues, request: &Request, media_types: MediaTypes) -> Response {
    PAGE.serve(request, media_types, &Flagz(flags))
}

struct Flagz<'a>(&'a FlagValues);

impl Contents for Flagz<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.0.iter() {
            // The reference chooses one of four separators by chance, so that no program relies on it.
            let _ = writeln!(text, "{name}={value}");
        }
        text
    }

    fn members(&self) -> Vec<(&'static str, Value)> {
        vec![("flags", json!(self.0.as_ref()))]
    }
}
