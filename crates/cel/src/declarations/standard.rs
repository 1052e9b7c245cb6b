//! The functions and operators of the language itself.

use super::table::Table;

/// <https://github.com/google/cel-spec/blob/master/doc/langdef.md#list-of-standard-definitions>
pub(super) const FUNCTIONS: Table = &[
    ("_?_:_", &[("conditional", "(bool, A, A) -> A")]),
    ("_&&_", &[("logical_and", "(bool, bool) -> bool")]),
    ("_||_", &[("logical_or", "(bool, bool) -> bool")]),
    ("!_", &[("logical_not", "(bool) -> bool")]),
    ("@not_strictly_false", &[("not_strictly_false", "(bool) -> bool")]),
    ("_==_", &[("equals", "(A, A) -> bool")]),
    ("_!=_", &[("not_equals", "(A, A) -> bool")]),
    (
        "_+_",
        &[
            ("add_bytes", "(bytes, bytes) -> bytes"),
            ("add_double", "(double, double) -> double"),
            ("add_duration_duration", "(duration, duration) -> duration"),
            ("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
            ("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
            ("add_int64", "(int, int) -> int"),
            ("add_list", "(list(A), list(A)) -> list(A)"),
            ("add_string", "(string, string) -> string"),
            ("add_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "_/_",
        &[
            ("divide_double", "(double, double) -> double"),
            ("divide_int64", "(int, int) -> int"),
            ("divide_uint64", "(uint, uint) -> uint"),
        ],
    ),
    ("_%_", &[("modulo_int64", "(int, int) -> int"), ("modulo_uint64", "(uint, uint) -> uint")]),
    (
        "_*_",
        &[
            ("multiply_double", "(double, double) -> double"),
            ("multiply_int64", "(int, int) -> int"),
            ("multiply_uint64", "(uint, uint) -> uint"),
        ],
    ),
    ("-_", &[("negate_double", "(double) -> double"), ("negate_int64", "(int) -> int")]),
    (
        "_-_",
        &[
            ("subtract_double", "(double, double) -> double"),
            ("subtract_duration_duration", "(duration, duration) -> duration"),
            ("subtract_int64", "(int, int) -> int"),
            ("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
            ("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
            ("subtract_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        "_<_",
        &[
            ("less_bool", "(bool, bool) -> bool"),
            ("less_int64", "(int, int) -> bool"),
            ("less_int64_double", "(int, double) -> bool"),
            ("less_int64_uint64", "(int, uint) -> bool"),
            ("less_uint64", "(uint, uint) -> bool"),
            ("less_uint64_double", "(uint, double) -> bool"),
            ("less_uint64_int64", "(uint, int) -> bool"),
            ("less_double", "(double, double) -> bool"),
            ("less_double_int64", "(double, int) -> bool"),
            ("less_double_uint64", "(double, uint) -> bool"),
            ("less_string", "(string, string) -> bool"),
            ("less_bytes", "(bytes, bytes) -> bool"),
            ("less_timestamp", "(timestamp, timestamp) -> bool"),
            ("less_duration", "(duration, duration) -> bool"),
        ],
    ),
    (
        "_<=_",
        &[
            ("less_equals_bool", "(bool, bool) -> bool"),
            ("less_equals_int64", "(int, int) -> bool"),
            ("less_equals_int64_double", "(int, double) -> bool"),
            ("less_equals_int64_uint64", "(int, uint) -> bool"),
            ("less_equals_uint64", "(uint, uint) -> bool"),
            ("less_equals_uint64_double", "(uint, double) -> bool"),
            ("less_equals_uint64_int64", "(uint, int) -> bool"),
            ("less_equals_double", "(double, double) -> bool"),
            ("less_equals_double_int64", "(double, int) -> bool"),
            ("less_equals_double_uint64", "(double, uint) -> bool"),
            ("less_equals_string", "(string, string) -> bool"),
            ("less_equals_bytes", "(bytes, bytes) -> bool"),
            ("less_equals_timestamp", "(timestamp, timestamp) -> bool"),
            ("less_equals_duration", "(duration, duration) -> bool"),
        ],
    ),
    (
        "_>_",
        &[
            ("greater_bool", "(bool, bool) -> bool"),
            ("greater_int64", "(int, int) -> bool"),
            ("greater_int64_double", "(int, double) -> bool"),
            ("greater_int64_uint64", "(int, uint) -> bool"),
            ("greater_uint64", "(uint, uint) -> bool"),
            ("greater_uint64_double", "(uint, double) -> bool"),
            ("greater_uint64_int64", "(uint, int) -> bool"),
            ("greater_double", "(double, double) -> bool"),
            ("greater_double_int64", "(double, int) -> bool"),
            ("greater_double_uint64", "(double, uint) -> bool"),
            ("greater_string", "(string, string) -> bool"),
            ("greater_bytes", "(bytes, bytes) -> bool"),
            ("greater_timestamp", "(timestamp, timestamp) -> bool"),
            ("greater_duration", "(duration, duration) -> bool"),
        ],
    ),
    (
        "_>=_",
        &[
            ("greater_equals_bool", "(bool, bool) -> bool"),
            ("greater_equals_int64", "(int, int) -> bool"),
            ("greater_equals_int64_double", "(int, double) -> bool"),
            ("greater_equals_int64_uint64", "(int, uint) -> bool"),
            ("greater_equals_uint64", "(uint, uint) -> bool"),
            ("greater_equals_uint64_double", "(uint, double) -> bool"),
            ("greater_equals_uint64_int64", "(uint, int) -> bool"),
            ("greater_equals_double", "(double, double) -> bool"),
            ("greater_equals_double_int64", "(double, int) -> bool"),
            ("greater_equals_double_uint64", "(double, uint) -> bool"),
            ("greater_equals_string", "(string, string) -> bool"),
            ("greater_equals_bytes", "(bytes, bytes) -> bool"),
            ("greater_equals_timestamp", "(timestamp, timestamp) -> bool"),
            ("greater_equals_duration", "(duration, duration) -> bool"),
        ],
    ),
    ("_[_]", &[("index_list", "(list(A), int) -> A"), ("index_map", "(map(A, B), A) -> B")]),
    ("@in", &[("in_list", "(A, list(A)) -> bool"), ("in_map", "(A, map(A, B)) -> bool")]),
    (
        "size",
        &[
            ("size_bytes", "(bytes) -> int"),
            ("bytes_size", "bytes.() -> int"),
            ("size_list", "(list(A)) -> int"),
            ("list_size", "list(A).() -> int"),
            ("size_map", "(map(A, B)) -> int"),
            ("map_size", "map(A, B).() -> int"),
            ("size_string", "(string) -> int"),
            ("string_size", "string.() -> int"),
        ],
    ),
    ("type", &[("type", "(A) -> type(A)")]),
    ("bool", &[("bool_to_bool", "(bool) -> bool"), ("string_to_bool", "(string) -> bool")]),
    ("bytes", &[("bytes_to_bytes", "(bytes) -> bytes"), ("string_to_bytes", "(string) -> bytes")]),
    (
        "double",
        &[
            ("double_to_double", "(double) -> double"),
            ("int64_to_double", "(int) -> double"),
            ("string_to_double", "(string) -> double"),
            ("uint64_to_double", "(uint) -> double"),
        ],
    ),
    (
        "duration",
        &[
            ("duration_to_duration", "(duration) -> duration"),
            ("int64_to_duration", "(int) -> duration"),
            ("string_to_duration", "(string) -> duration"),
        ],
    ),
    ("dyn", &[("to_dyn", "(A) -> dyn")]),
    (
        "int",
        &[
            ("int64_to_int64", "(int) -> int"),
            ("double_to_int64", "(double) -> int"),
            ("duration_to_int64", "(duration) -> int"),
            ("string_to_int64", "(string) -> int"),
            ("timestamp_to_int64", "(timestamp) -> int"),
            ("uint64_to_int64", "(uint) -> int"),
        ],
    ),
    (
        "string",
        &[
            ("string_to_string", "(string) -> string"),
            ("bool_to_string", "(bool) -> string"),
            ("bytes_to_string", "(bytes) -> string"),
            ("double_to_string", "(double) -> string"),
            ("duration_to_string", "(duration) -> string"),
            ("int64_to_string", "(int) -> string"),
            ("timestamp_to_string", "(timestamp) -> string"),
            ("uint64_to_string", "(uint) -> string"),
        ],
    ),
    (
        "timestamp",
        &[
            ("timestamp_to_timestamp", "(timestamp) -> timestamp"),
            ("int64_to_timestamp", "(int) -> timestamp"),
            ("string_to_timestamp", "(string) -> timestamp"),
        ],
    ),
    (
        "uint",
        &[
            ("uint64_to_uint64", "(uint) -> uint"),
            ("double_to_uint64", "(double) -> uint"),
            ("int64_to_uint64", "(int) -> uint"),
            ("string_to_uint64", "(string) -> uint"),
        ],
    ),
    ("contains", &[("contains_string", "string.(string) -> bool")]),
    ("endsWith", &[("ends_with_string", "string.(string) -> bool")]),
    ("startsWith", &[("starts_with_string", "string.(string) -> bool")]),
    ("matches", &[("matches", "(string, string) -> bool"), ("matches_string", "string.(string) -> bool")]),
    (
        "getFullYear",
        &[
            ("timestamp_to_year", "timestamp.() -> int"),
            ("timestamp_to_year_with_tz", "timestamp.(string) -> int"),
        ],
    ),
    (
        "getMonth",
        &[
            ("timestamp_to_month", "timestamp.() -> int"),
            ("timestamp_to_month_with_tz", "timestamp.(string) -> int"),
        ],
    ),
    (
        "getDayOfYear",
        &[
            ("timestamp_to_day_of_year", "timestamp.() -> int"),
            ("timestamp_to_day_of_year_with_tz", "timestamp.(string) -> int"),
        ],
    ),
    (
        "getDayOfMonth",
        &[
            ("timestamp_to_day_of_month", "timestamp.() -> int"),
            ("timestamp_to_day_of_month_with_tz", "timestamp.(string) -> int"),
        ],
    ),
    (
        "getDate",
        &[
            ("timestamp_to_day_of_month_1_based", "timestamp.() -> int"),
            ("timestamp_to_day_of_month_1_based_with_tz", "timestamp.(string) -> int"),
        ],
    ),
    (
        "getDayOfWeek",
        &[
            ("timestamp_to_day_of_week", "timestamp.() -> int"),
            ("timestamp_to_day_of_week_with_tz", "timestamp.(string) -> int"),
        ],
    ),
    (
        "getHours",
        &[
            ("timestamp_to_hours", "timestamp.() -> int"),
            ("timestamp_to_hours_with_tz", "timestamp.(string) -> int"),
            ("duration_to_hours", "duration.() -> int"),
        ],
    ),
    (
        "getMinutes",
        &[
            ("timestamp_to_minutes", "timestamp.() -> int"),
            ("timestamp_to_minutes_with_tz", "timestamp.(string) -> int"),
            ("duration_to_minutes", "duration.() -> int"),
        ],
    ),
    (
        "getSeconds",
        &[
            ("timestamp_to_seconds", "timestamp.() -> int"),
            ("timestamp_to_seconds_tz", "timestamp.(string) -> int"),
            ("duration_to_seconds", "duration.() -> int"),
        ],
    ),
    (
        "getMilliseconds",
        &[
            ("timestamp_to_milliseconds", "timestamp.() -> int"),
            ("timestamp_to_milliseconds_with_tz", "timestamp.(string) -> int"),
            ("duration_to_milliseconds", "duration.() -> int"),
        ],
    ),
];
