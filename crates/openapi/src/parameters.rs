//! The parameters of operations.

/// A parameter in the query or the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Its name.
    pub(crate) name: &'static str,
    /// Whether it is a path parameter (and so required), not a query parameter.
    pub(crate) in_path: bool,
    /// `string`, `integer` or `boolean`.
    pub(crate) json_type: &'static str,
    /// The description for users.
    pub(crate) description: &'static str,
}

const fn query(name: &'static str, json_type: &'static str, description: &'static str) -> Parameter {
    Parameter { name, in_path: false, json_type, description }
}

const fn path(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, in_path: true, json_type: "string", description }
}

pub(crate) const NAME: Parameter = path("name", "The name of the object.");
pub(crate) const NAMESPACE: Parameter = path("namespace", "The namespace of the object.");
pub(crate) const PROXIED_PATH: Parameter = path("path", "The path of the proxied request.");
pub(crate) const PRETTY: Parameter =
    query("pretty", "string", "Whether JSON is indented; browsers and curl get it indented by default.");

const CONTINUE: Parameter = query(
    "continue",
    "string",
    "The token of the page before, to get the next one. It expires, which is answered by 410.",
);
const FIELD_SELECTOR: Parameter = query(
    "fieldSelector",
    "string",
    "Restricts the list of returned objects by their fields. All by default.",
);
const LABEL_SELECTOR: Parameter = query(
    "labelSelector",
    "string",
    "Restricts the list of returned objects by their labels. All by default.",
);
const LIMIT: Parameter = query(
    "limit",
    "integer",
    "How many objects a page has at most; the answer has a token for the next page when there are more.",
);
pub(crate) const RESOURCE_VERSION: Parameter =
    query("resourceVersion", "string", "Which version of the data may be or must be answered.");
const RESOURCE_VERSION_MATCH: Parameter =
    query("resourceVersionMatch", "string", "How resourceVersion is meant: NotOlderThan or Exact.");
const SEND_INITIAL_EVENTS: Parameter = query(
    "sendInitialEvents",
    "boolean",
    "Whether a watch starts with the objects that exist, ended by a bookmark.",
);
const SHARD_SELECTOR: Parameter =
    query("shardSelector", "string", "Only objects of a shard, chosen by the hash of a field.");
const TIMEOUT_SECONDS: Parameter = query("timeoutSeconds", "integer", "Timeout of the request, in seconds.");
const DRY_RUN: Parameter = query("dryRun", "string", "With All, everything is done but nothing is kept.");
const FIELD_MANAGER: Parameter = query(
    "fieldManager",
    "string",
    "Name of the actor that makes the change, at most 128 printable characters.",
);
const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "Handling of unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
);

/// The parameters of list and watch requests.
pub(crate) const LIST: [Parameter; 11] = [
    query("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
    query(
        "watch",
        "boolean",
        "Watch for changes to the described resources: the answer is a stream of events instead of a list.",
    ),
];

/// The parameters that select the objects of a delete collection.
pub(crate) const DELETE_COLLECTION: [Parameter; 9] = [
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
];

/// The parameters of deletes.
pub(crate) const DELETE: [Parameter; 5] = [
    DRY_RUN,
    query("gracePeriodSeconds", "integer", "How long the object may take to end; 0 is at once."),
    query(
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Whether an object is deleted that cannot be read from storage any more.",
    ),
    query("orphanDependents", "boolean", "The older form of propagationPolicy."),
    query(
        "propagationPolicy",
        "string",
        "What becomes of the objects it owns: Orphan, Background or Foreground.",
    ),
];

/// The parameters of writes.
pub(crate) const WRITE: [Parameter; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

/// The parameters of patches.
pub(crate) const PATCH: [Parameter; 4] = [
    DRY_RUN,
    FIELD_MANAGER,
    FIELD_VALIDATION,
    query("force", "boolean", "Whether an apply takes fields that others manage."),
];

/// The descriptions of the options of streams and proxied requests, whose types have none here.
pub(crate) fn option_description(name: &str) -> &'static str {
    match name {
        "command" => "The command, one argument each time it is given.",
        "container" => "The container; the only one by default.",
        "follow" => "Whether the answer goes on with what is logged later.",
        "insecureSkipTLSVerifyBackend" => "Whether the certificate of the node's kubelet goes unchecked.",
        "limitBytes" => "After how many bytes the answer ends.",
        "path" => "The path of the proxied request, with its query.",
        "ports" => "The ports, one each time it is given.",
        "previous" => "The log of the container that ran before.",
        "sinceSeconds" => "How far back the log starts.",
        "stderr" => "Whether standard error is streamed.",
        "stdin" => "Whether standard input is streamed.",
        "stdout" => "Whether standard output is streamed.",
        "stream" => "Which stream is answered: All, Stdout or Stderr.",
        "tailLines" => "With how many lines from the end the log starts.",
        "timestamps" => "Whether each line starts with its time.",
        "tty" => "Whether a terminal is allocated.",
        _ => "",
    }
}

/// An option of a stream or a proxied request.
pub(crate) fn option(name: &'static str, json_type: &'static str) -> Parameter {
    Parameter { name, in_path: false, json_type, description: option_description(name) }
}
