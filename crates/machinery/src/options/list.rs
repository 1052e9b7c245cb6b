//! Decodes the options of lists and watches
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list>).

use super::{QueryValues, check, parse_list_resource_version, parse_resource_version};
use crate::continue_token::ContinueToken;
use crate::{ErrorList, FieldError, FieldPath, FieldSelector, LabelSelector, Status};

/// How the resourceVersion of a list is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceVersionMatch {
    /// The state at exactly that resourceVersion.
    Exact,
    /// The state at that resourceVersion or a later one.
    NotOlderThan,
}

/// The options of a list or watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// Selects objects by labels.
    pub label_selector: LabelSelector,
    /// Selects objects by fields. Whether the resource supports these fields is checked later.
    pub field_selector: FieldSelector,
    /// Selects objects by the hash of a field, unparsed
    /// (<https://github.com/kubernetes/enhancements/issues/5866>).
    pub shard_selector: String,
    /// Whether the request is a watch.
    pub watch: bool,
    /// Whether a watch receives bookmarks.
    pub allow_watch_bookmarks: bool,
    /// The resourceVersion to list at or to watch from, unparsed; see [`ListOptions::start`] and
    /// [`ListOptions::watch_revision`].
    pub resource_version: String,
    /// How the resourceVersion is matched.
    pub resource_version_match: Option<ResourceVersionMatch>,
    /// The time limit of a watch, in seconds.
    pub timeout_seconds: Option<i64>,
    /// The maximum number of objects of a page; 0 means no limit.
    pub limit: usize,
    /// The continue token of the next page.
    pub continue_token: Option<String>,
    /// Whether a watch begins with the current state.
    pub send_initial_events: Option<bool>,
}

/// The state that a list is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStart {
    /// The latest state of the store.
    Latest,
    /// Any available state.
    Any,
    /// A state at this resourceVersion or later.
    NotOlderThan(u64),
    /// The state at exactly this resourceVersion.
    Exact(u64),
    /// The state and position of a continue token.
    Continue(ContinueToken),
}

impl ListOptions {
    /// Decodes the parameters of a query and validates them. Watches may ask for initial events if the server
    /// `streams_lists` (feature gate `WatchList`).
    ///
    /// # Errors
    /// 400 for malformed numbers and selectors, 422 for conflicting options.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        streams_lists: bool,
    ) -> Result<ListOptions, Status> {
        let (options, errors) = ListOptions::decode(pairs, streams_lists)?;
        check("ListOptions", errors)?;
        Ok(options)
    }

    /// Decodes the parameters of a query: the options, and the conflicts among them.
    ///
    /// # Errors
    /// 400 for malformed numbers and selectors.
    pub fn decode<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        streams_lists: bool,
    ) -> Result<(ListOptions, ErrorList), Status> {
        let query = QueryValues::new(pairs);
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or_default();
        let selector_error = |error: crate::selectors::SelectorError| Status::bad_request(error.to_string());
        let label_selector = LabelSelector::parse(query.text("labelSelector")).map_err(selector_error)?;
        let field_selector = FieldSelector::parse(query.text("fieldSelector")).map_err(selector_error)?;
        let watch = query.boolean("watch").unwrap_or_default();
        let resource_version = query.text("resourceVersion");
        let mut send_initial_events = query.boolean("sendInitialEvents");
        let mut version_match = query.text("resourceVersionMatch");
        // Legacy watches without a resourceVersion begin with the current state.
        if streams_lists
            && watch
            && send_initial_events.is_none()
            && version_match.is_empty()
            && matches!(resource_version, "" | "0")
        {
            send_initial_events = Some(true);
            version_match = "NotOlderThan";
        }
        let has_continue = !query.text("continue").is_empty();
        let errors = match watch {
            true => validate_watch(version_match, send_initial_events, has_continue, streams_lists),
            false => validate_list(version_match, send_initial_events, has_continue, resource_version),
        };
        let options = ListOptions {
            label_selector,
            field_selector,
            shard_selector: query.text("shardSelector").to_owned(),
            watch,
            allow_watch_bookmarks: query.boolean("allowWatchBookmarks").unwrap_or_default(),
            resource_version: resource_version.to_owned(),
            resource_version_match: match version_match {
                "Exact" => Some(ResourceVersionMatch::Exact),
                "NotOlderThan" => Some(ResourceVersionMatch::NotOlderThan),
                _ => None,
            },
            timeout_seconds,
            limit: usize::try_from(limit).unwrap_or_default(),
            continue_token: query.first("continue").filter(|token| !token.is_empty()).map(str::to_owned),
            send_initial_events,
        };
        Ok((options, errors))
    }

    /// The state that the list is taken from. `key_prefix` is the key prefix of the listed resource. A list of one key
    /// (`is_of_one_key`) has no pages.
    ///
    /// # Errors
    /// 400 for a malformed resourceVersion or continue token.
    pub fn start(&self, key_prefix: &str, is_of_one_key: bool) -> Result<ListStart, Status> {
        if let Some(token) = &self.continue_token {
            let token = ContinueToken::decode(token, key_prefix)?;
            if !matches!(self.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return Ok(ListStart::Continue(token));
        }
        if self.resource_version.is_empty() {
            return Ok(ListStart::Latest);
        }
        let version = parse_list_resource_version(&self.resource_version)?;
        // Pages were exact before `resourceVersionMatch` existed.
        let is_exact = match self.resource_version_match {
            Some(version_match) => version_match == ResourceVersionMatch::Exact,
            None => self.limit > 0 && !is_of_one_key && !self.is_at_any_version(),
        };
        Ok(match (version, is_exact) {
            // Such as `00`, which is not the name of any state.
            (0, true) => ListStart::Latest,
            (version, true) => ListStart::Exact(version),
            (0, false) => ListStart::Any,
            (version, _) => ListStart::NotOlderThan(version),
        })
    }

    /// Whether any available state may be listed. Kube-apiserver ignores the limit of such a list, with a continue token
    /// too, when its watch cache serves it.
    pub fn is_at_any_version(&self) -> bool {
        self.resource_version == "0"
    }

    /// The resourceVersion after which a watch begins; `None` when it has none.
    ///
    /// # Errors
    /// 500 when the resourceVersion is not a number.
    pub fn watch_revision(&self) -> Result<Option<u64>, Status> {
        match self.resource_version.as_str() {
            "" => Ok(None),
            text => parse_resource_version(text).map(Some),
        }
    }
}

fn validate_list(
    version_match: &str,
    send_initial_events: Option<bool>,
    has_continue: bool,
    resource_version: &str,
) -> ErrorList {
    let path = FieldPath::new("resourceVersionMatch");
    let mut errors = ErrorList::new();
    if !version_match.is_empty() {
        if resource_version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if has_continue {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(&path, version_match, &["Exact", "NotOlderThan", ""]));
        }
        if version_match == "Exact" && resource_version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if send_initial_events.is_some() {
        let detail = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden(&FieldPath::new("sendInitialEvents"), detail));
    }
    errors
}

fn validate_watch(
    version_match: &str,
    send_initial_events: Option<bool>,
    has_continue: bool,
    streams_lists: bool,
) -> ErrorList {
    let path = FieldPath::new("resourceVersionMatch");
    let mut errors = ErrorList::new();
    if send_initial_events.is_some() && version_match != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(&path, detail));
    }
    if send_initial_events.is_some() && !streams_lists {
        let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        errors.push(FieldError::forbidden(&FieldPath::new("sendInitialEvents"), detail));
    }
    if !version_match.is_empty() {
        if send_initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if version_match != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, version_match, &["NotOlderThan"]));
        }
        if has_continue {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    errors
}
