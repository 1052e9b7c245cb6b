//! The functions of cel-go's extensions that Kubernetes enables.

use super::table::Table;

/// Optionals: <https://github.com/google/cel-spec/wiki/proposal-246>.
pub(super) const OPTIONALS: Table = &[
    ("optional.of", &[("optional_of", "(V) -> optional(V)")]),
    ("optional.ofNonZeroValue", &[("optional_ofNonZeroValue", "(V) -> optional(V)")]),
    ("optional.none", &[("optional_none", "() -> optional(V)")]),
    ("value", &[("optional_value", "optional(V).() -> V")]),
    ("hasValue", &[("optional_hasValue", "optional(V).() -> bool")]),
    ("or", &[("optional_or_optional", "optional(V).(optional(V)) -> optional(V)")]),
    ("orValue", &[("optional_orValue_value", "optional(V).(V) -> V")]),
    ("_?._", &[("select_optional_field", "(dyn, string) -> optional(V)")]),
    (
        "_[?_]",
        &[
            ("list_optindex_optional_int", "(list(V), int) -> optional(V)"),
            ("optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
            ("map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
            ("optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
        ],
    ),
    (
        "_[_]",
        &[
            ("optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
            ("optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
        ],
    ),
    ("last", &[("list_last", "list(V).() -> optional(V)")]),
    ("first", &[("list_first", "list(V).() -> optional(V)")]),
    ("optional.unwrap", &[("optional_unwrap", "(list(optional(V))) -> list(V)")]),
    ("unwrapOpt", &[("optional_unwrapOpt", "list(optional(V)).() -> list(V)")]),
];

/// Strings: <https://github.com/google/cel-go/tree/master/ext#strings>.
pub(super) const STRINGS: Table = &[
    ("charAt", &[("string_char_at_int", "string.(int) -> string")]),
    (
        "indexOf",
        &[
            ("string_index_of_string", "string.(string) -> int"),
            ("string_index_of_string_int", "string.(string, int) -> int"),
        ],
    ),
    (
        "lastIndexOf",
        &[
            ("string_last_index_of_string", "string.(string) -> int"),
            ("string_last_index_of_string_int", "string.(string, int) -> int"),
        ],
    ),
    ("lowerAscii", &[("string_lower_ascii", "string.() -> string")]),
    (
        "replace",
        &[
            ("string_replace_string_string", "string.(string, string) -> string"),
            ("string_replace_string_string_int", "string.(string, string, int) -> string"),
        ],
    ),
    (
        "split",
        &[
            ("string_split_string", "string.(string) -> list(string)"),
            ("string_split_string_int", "string.(string, int) -> list(string)"),
        ],
    ),
    (
        "substring",
        &[
            ("string_substring_int", "string.(int) -> string"),
            ("string_substring_int_int", "string.(int, int) -> string"),
        ],
    ),
    ("trim", &[("string_trim", "string.() -> string")]),
    ("upperAscii", &[("string_upper_ascii", "string.() -> string")]),
    ("format", &[("string_format", "string.(list(dyn)) -> string")]),
    ("strings.quote", &[("strings_quote", "(string) -> string")]),
    (
        "join",
        &[
            ("list_join", "list(string).() -> string"),
            ("list_join_string", "list(string).(string) -> string"),
        ],
    ),
];

/// Sets: <https://github.com/google/cel-go/tree/master/ext#sets>.
pub(super) const SETS: Table = &[
    ("sets.contains", &[("list_sets_contains_list", "(list(T), list(T)) -> bool")]),
    ("sets.equivalent", &[("list_sets_equivalent_list", "(list(T), list(T)) -> bool")]),
    ("sets.intersects", &[("list_sets_intersects_list", "(list(T), list(T)) -> bool")]),
];

/// The function for macros with two variables: <https://github.com/google/cel-go/tree/master/ext#twovarcomprehensions>.
pub(super) const TWO_VARIABLE_COMPREHENSIONS: Table = &[(
    "cel.@mapInsert",
    &[
        ("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)"),
        ("@mapInsert_map_map", "(map(K, V), map(K, V)) -> map(K, V)"),
    ],
)];

/// Lists: <https://github.com/google/cel-go/tree/master/ext#lists>.
pub(super) const LISTS: Table = &[
    ("slice", &[("list_slice", "list(T).(int, int) -> list(T)")]),
    (
        "flatten",
        &[
            ("list_flatten", "list(list(T)).() -> list(T)"),
            ("list_flatten_int", "list(dyn).(int) -> list(dyn)"),
        ],
    ),
    (
        "sort",
        &[
            ("list_int_sort", "list(int).() -> list(int)"),
            ("list_uint_sort", "list(uint).() -> list(uint)"),
            ("list_double_sort", "list(double).() -> list(double)"),
            ("list_bool_sort", "list(bool).() -> list(bool)"),
            ("list_google.protobuf.Duration_sort", "list(duration).() -> list(duration)"),
            ("list_google.protobuf.Timestamp_sort", "list(timestamp).() -> list(timestamp)"),
            ("list_string_sort", "list(string).() -> list(string)"),
            ("list_bytes_sort", "list(bytes).() -> list(bytes)"),
        ],
    ),
    (
        "@sortByAssociatedKeys",
        &[
            ("list_int_sortByAssociatedKeys", "list(T).(list(int)) -> list(T)"),
            ("list_uint_sortByAssociatedKeys", "list(T).(list(uint)) -> list(T)"),
            ("list_double_sortByAssociatedKeys", "list(T).(list(double)) -> list(T)"),
            ("list_bool_sortByAssociatedKeys", "list(T).(list(bool)) -> list(T)"),
            ("list_google.protobuf.Duration_sortByAssociatedKeys", "list(T).(list(duration)) -> list(T)"),
            ("list_google.protobuf.Timestamp_sortByAssociatedKeys", "list(T).(list(timestamp)) -> list(T)"),
            ("list_string_sortByAssociatedKeys", "list(T).(list(string)) -> list(T)"),
            ("list_bytes_sortByAssociatedKeys", "list(T).(list(bytes)) -> list(T)"),
        ],
    ),
    ("lists.range", &[("lists_range", "(int) -> list(int)")]),
    ("reverse", &[("list_reverse", "list(T).() -> list(T)")]),
    ("distinct", &[("list_distinct", "list(T).() -> list(T)")]),
];
