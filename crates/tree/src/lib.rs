//! The tree of an object, as it is decoded, defaulted, admitted, validated and encoded.
//!
//! A [`Value`] is what `serde_json::Value` is, with the same names, and allocates a fraction of it: texts of up to 24
//! bytes are kept in place, and an object of few members is one sorted slice. Objects of many members are B-trees, so
//! that no operation on a [`Map`] takes more than logarithmic time in the number of its members.

mod convert;
mod index;
pub mod map;
mod serialize;
mod text;
mod to_value;
mod value;

pub use index::Index;
pub use serde_json::Number;
pub use text::Text;
pub use to_value::to_value;
pub use value::Value;

/// The members of an object, sorted by name.
pub type Map = map::Map<Value>;

/// Functions that the expanded macros of this crate call.
#[doc(hidden)]
pub mod __private {
    pub use crate::to_value::{interpolated, no_items};
}

/// Makes a [`Value`] of JSON, into which serializable expressions may be put.
///
/// ```
/// let name = "web";
/// let pod = pintle_tree::json!({"metadata": {"name": name, "labels": {}}, "spec": [null, 1 + 1, true]});
/// assert_eq!(pod.to_string(), r#"{"metadata":{"labels":{},"name":"web"},"spec":[null,2,true]}"#);
/// ```
///
/// # Panics
/// When an expression cannot be serialized.
#[macro_export]
macro_rules! json {
    // The rest of a list, whose items are values of their own or expressions.
    (@items $list:ident) => {};
    (@items $list:ident null $(, $($rest:tt)*)?) => {
        $list.push($crate::Value::Null);
        $($crate::json!(@items $list $($rest)*);)?
    };
    (@items $list:ident [$($inner:tt)*] $(, $($rest:tt)*)?) => {
        $list.push($crate::json!([$($inner)*]));
        $($crate::json!(@items $list $($rest)*);)?
    };
    (@items $list:ident {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $list.push($crate::json!({$($inner)*}));
        $($crate::json!(@items $list $($rest)*);)?
    };
    (@items $list:ident $item:expr $(, $($rest:tt)*)?) => {
        $list.push($crate::json!($item));
        $($crate::json!(@items $list $($rest)*);)?
    };

    // The rest of an object, whose names are literals, constants or expressions in parentheses.
    (@members $map:ident) => {};
    (@members $map:ident $name:tt : null $(, $($rest:tt)*)?) => {
        $map.insert($name, $crate::Value::Null);
        $($crate::json!(@members $map $($rest)*);)?
    };
    (@members $map:ident $name:tt : [$($inner:tt)*] $(, $($rest:tt)*)?) => {
        $map.insert($name, $crate::json!([$($inner)*]));
        $($crate::json!(@members $map $($rest)*);)?
    };
    (@members $map:ident $name:tt : {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $map.insert($name, $crate::json!({$($inner)*}));
        $($crate::json!(@members $map $($rest)*);)?
    };
    (@members $map:ident $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $map.insert($name, $crate::json!($value));
        $($crate::json!(@members $map $($rest)*);)?
    };

    (null) => {
        $crate::Value::Null
    };
    ([]) => {
        $crate::Value::Array(::std::vec::Vec::new())
    };
    ([$($items:tt)+]) => {{
        let mut list = $crate::__private::no_items();
        $crate::json!(@items list $($items)+);
        $crate::Value::Array(list)
    }};
    ({}) => {
        $crate::Value::Object($crate::Map::new())
    };
    ({$($members:tt)+}) => {{
        let mut map = $crate::Map::new();
        $crate::json!(@members map $($members)+);
        $crate::Value::Object(map)
    }};
    ($value:expr) => {
        $crate::__private::interpolated(&$value)
    };
}
