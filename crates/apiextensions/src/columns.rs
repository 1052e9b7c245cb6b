//! Converts custom resources to table rows by the columns that their definition declares
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#additional-printer-columns>).

use jiff::Timestamp;
use pintle_machinery::{
    JsonPath, Value, ValueExt,
    codec::{self, json::encode_any},
    duration::human_duration,
    json,
    jsonpath::Selected,
    text::go_format,
};
use pintle_openapi::field_description;
use pintle_registry::{Cell, Column, TableConvertor};
use std::sync::{Arc, OnceLock};

/// The columns of a version, given its entry in a definition: the name and the declared columns, or the name and the
/// age when it declares none. Columns from the first one with a malformed path on are left out.
pub fn columns(version: &Value) -> Arc<dyn TableConvertor> {
    let declared = version.items_at("additionalPrinterColumns");
    if declared.is_empty() {
        static DEFAULT: OnceLock<Arc<dyn TableConvertor>> = OnceLock::new();
        return DEFAULT.get_or_init(|| Arc::new(Columns([age()].into()))).clone();
    }
    Arc::new(Columns(declared.iter().take(MAX_COLUMNS).map_while(PathColumn::new).collect()))
}

/// The maximum number of columns besides the name.
pub(crate) const MAX_COLUMNS: usize = 256;
/// The maximum number of values that the paths of a row visit, and of bytes of text in a row. Cells beyond are empty.
const MAX_ROW_WORK: usize = 200_000;
const MAX_ROW_TEXT: usize = 1 << 20;

/// The name column, and these columns.
struct Columns(Box<[PathColumn]>);

impl TableConvertor for Columns {
    fn columns(&self) -> Vec<Column> {
        let name = Column { description: object_meta_description("name").to_owned(), ..Column::name() };
        std::iter::once(name).chain(self.0.iter().map(PathColumn::column)).collect()
    }

    fn reads_metadata_only(&self) -> bool {
        self.0.iter().all(|column| column.path.first_field() == Some("metadata"))
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.0.len() + 1);
        cells.push(object.str_at("metadata.name").into());
        let (mut work, mut room) = (MAX_ROW_WORK, MAX_ROW_TEXT);
        cells.extend(self.0.iter().map(|column| {
            let cell = column.cell(object, now, &mut work);
            let length = cell.as_str().map_or(0, str::len);
            match room.checked_sub(length) {
                Some(left) => {
                    room = left;
                    cell
                }
                None => Value::Null,
            }
        }));
        cells
    }
}

/// A column with the value at a path.
struct PathColumn {
    name: Box<str>,
    column_type: ColumnType,
    format: Box<str>,
    description: Option<Box<str>>,
    priority: i32,
    /// The path as declared.
    source: Box<str>,
    path: JsonPath,
}

#[derive(Debug, Clone, Copy)]
enum ColumnType {
    Boolean,
    Date,
    Integer,
    Number,
    String,
}

impl ColumnType {
    /// The type for a name in definitions; also accepts names that only older definitions contain.
    fn new(name: &str) -> Option<ColumnType> {
        Some(match name {
            "boolean" => ColumnType::Boolean,
            "date" => ColumnType::Date,
            "integer" => ColumnType::Integer,
            "number" => ColumnType::Number,
            "string" => ColumnType::String,
            _ => return None,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            ColumnType::Boolean => "boolean",
            ColumnType::Date => "date",
            ColumnType::Integer => "integer",
            ColumnType::Number => "number",
            ColumnType::String => "string",
        }
    }
}

impl PathColumn {
    fn new(column: &Value) -> Option<PathColumn> {
        let source = column.str_at("jsonPath");
        Some(PathColumn {
            name: column.str_at("name").into(),
            column_type: ColumnType::new(column.str_at("type"))?,
            format: column.str_at("format").into(),
            description: Some(column.str_at("description")).filter(|text| !text.is_empty()).map(Into::into),
            priority: column
                .i64_at("priority")
                .and_then(|priority| i32::try_from(priority).ok())
                .unwrap_or(0),
            source: source.into(),
            path: JsonPath::parse_path(source).ok()?,
        })
    }

    fn column(&self) -> Column {
        let description = match &self.description {
            Some(description) => description.to_string(),
            None => format!("Custom resource definition column (in JSONPath format): {}", self.source),
        };
        Column {
            name: self.name.to_string(),
            column_type: self.column_type.as_str().to_owned(),
            format: self.format.to_string(),
            description,
            priority: self.priority,
        }
    }

    /// The first value that the path selects, if it has the column's type; null otherwise.
    fn cell(&self, object: &Value, now: Timestamp, work: &mut usize) -> Cell {
        let Some(selected) = self.path.first_within(object, work) else { return Value::Null };
        match selected {
            Selected::Byte(byte) => match self.column_type {
                ColumnType::String => byte.to_string().into(),
                _ => Value::Null,
            },
            Selected::Value(value) => cell(self.column_type, value, now),
        }
    }
}

fn cell(column_type: ColumnType, value: &Value, now: Timestamp) -> Cell {
    match (column_type, value) {
        (ColumnType::String, value) => text(value).into(),
        (ColumnType::Boolean, Value::Bool(boolean)) => (*boolean).into(),
        (ColumnType::Integer, Value::Number(number)) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => truncated(number.as_f64().unwrap_or_default()).into(),
        },
        (ColumnType::Number, Value::Number(number)) => match number.as_i64() {
            Some(integer) => (integer as f64).into(),
            None => number.clone().into(),
        },
        (ColumnType::Date, Value::String(time)) => age_of(time, now).into(),
        _ => Value::Null,
    }
}

/// Removes the fraction. A number that no integer reaches becomes the smallest one, as in the reference.
fn truncated(number: f64) -> i64 {
    let integer = number as i64;
    match integer {
        i64::MAX => i64::MIN,
        _ => integer,
    }
}

/// Converts a value to text: objects and lists as JSON, others in Go's format.
fn text(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => String::from_utf8_lossy(&encode_any(value)).into_owned(),
        // Go's templates print this for null.
        Value::Null => "<no value>".to_owned(),
        scalar => go_format(scalar),
    }
}

/// Formats the age of a timestamp.
fn age_of(time: &str, now: Timestamp) -> String {
    const UNKNOWN: &str = "<unknown>";
    if matches!(time, "" | "null") {
        return UNKNOWN.to_owned();
    }
    match codec::parse_time(time) {
        Ok(time) if time.is_zero() => UNKNOWN.to_owned(),
        Ok(time) => human_duration(now.as_second().saturating_sub(time.seconds)),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// The age column, for versions without declared columns.
fn age() -> PathColumn {
    PathColumn::new(&age_column()).unwrap_or_else(|| unreachable!("a constant, which is a column"))
}

/// The declaration of the age column.
pub(crate) fn age_column() -> Value {
    json!({
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": object_meta_description("creationTimestamp"),
    })
}

/// The API documentation of a field of `ObjectMeta`. Loaded once, for the first table, since the documentation is
/// stored compressed.
fn object_meta_description(field: &str) -> &'static str {
    static DESCRIPTIONS: OnceLock<[(&str, String); 2]> = OnceLock::new();
    let descriptions = DESCRIPTIONS.get_or_init(|| {
        ["name", "creationTimestamp"]
            .map(|field| (field, field_description(OBJECT_META, field).unwrap_or_default()))
    });
    descriptions.iter().find(|(name, _)| *name == field).map_or("", |(_, description)| description)
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn cells(paths: &[(&str, &str)], object: &Value) -> Vec<Value> {
        let declared: Vec<Value> =
            paths.iter().map(|(kind, path)| json!({"name": "C", "type": kind, "jsonPath": path})).collect();
        columns(&json!({"additionalPrinterColumns": declared})).cells(object, NOW.parse().unwrap())
    }

    #[test]
    fn paths_below_the_metadata_read_nothing_else() {
        let reads_metadata_only = |paths: &[&str]| {
            let declared: Vec<Value> =
                paths.iter().map(|path| json!({"name": "C", "type": "string", "jsonPath": path})).collect();
            columns(&json!({"additionalPrinterColumns": declared})).reads_metadata_only()
        };
        for (paths, expected) in [
            (&[][..], true),
            (&[".metadata.creationTimestamp", ".metadata.finalizers[0]"], true),
            (&[".metadata.creationTimestamp", ".spec.a"], false),
            (&["..a"], false),
            (&["['metadata','spec']"], false),
            (&[".*"], false),
            (&[".metadata[?(@.a==1)]"], false),
        ] {
            assert_eq!(reads_metadata_only(paths), expected, "{paths:?}");
        }
    }

    #[test]
    fn cells_are_of_the_type_of_their_column_or_null() {
        let object = json!({
            "metadata": {"name": "n"},
            "spec": {
                "s": "hello", "i": 7, "n": 2.5, "b": true, "o": {"x": "a<b", "y": 1}, "l": ["p", 1.5], "none": null,
                "d": "2026-01-01T00:55:00Z", "later": "2200-01-01T00:00:00Z", "empty": "", "big": 12_345_678.5, "huge": 1e21,
            },
        });
        for (column_type, path, expected) in [
            ("string", ".spec.s", json!("hello")),
            ("string", ".spec.i", json!("7")),
            ("string", ".spec.n", json!("2.5")),
            ("string", ".spec.big", json!("1.23456785e+07")),
            ("integer", ".spec.big", json!(12_345_678)),
            ("string", ".spec.b", json!("true")),
            ("string", ".spec.o", json!(r#"{"x":"a\u003cb","y":1}"#)),
            ("string", ".spec.l", json!(r#"["p",1.5]"#)),
            ("string", ".spec.l[*]", json!("p")),
            ("string", ".spec.none", json!("<no value>")),
            ("string", ".spec.none.x", json!(null)),
            ("string", ".spec.l[7]", json!(null)),
            ("string", ".spec.s.*", json!("104")),
            ("integer", ".spec.i", json!(7)),
            ("integer", ".spec.n", json!(2)),
            ("integer", ".spec.huge", json!(i64::MIN)),
            ("integer", ".spec.s", json!(null)),
            ("integer", ".spec.none", json!(null)),
            ("integer", ".spec.s.*", json!(null)),
            ("number", ".spec.i", json!(7.0)),
            ("number", ".spec.n", json!(2.5)),
            ("number", ".spec.b", json!(null)),
            ("boolean", ".spec.b", json!(true)),
            ("boolean", ".spec.s", json!(null)),
            ("date", ".spec.d", json!("5m")),
            ("date", ".spec.later", json!("<invalid>")),
            ("date", ".spec.s", json!("<invalid>")),
            ("date", ".spec.empty", json!("<unknown>")),
            ("date", ".spec.i", json!(null)),
        ] {
            assert_eq!(
                cells(&[(column_type, path)], &object),
                [json!("n"), expected],
                "{path} as {column_type}"
            );
        }
    }

    #[test]
    fn columns_are_described() {
        let table = columns(&json!({"additionalPrinterColumns": [
            {"name": "Str", "type": "string", "jsonPath": ".spec.s", "description": "A string", "format": "byte"},
            {"name": "Int", "type": "integer", "jsonPath": ".spec.i", "priority": 1},
        ]}));
        let [name, text, integer] = &table.columns()[..] else { panic!("{:?}", table.columns()) };
        assert_eq!((name.name.as_str(), name.format.as_str()), ("Name", "name"));
        assert!(name.description.starts_with("Name must be unique within a namespace."));
        assert_eq!(
            (text.column_type.as_str(), text.format.as_str(), text.description.as_str(), text.priority),
            ("string", "byte", "A string", 0)
        );
        let description = "Custom resource definition column (in JSONPath format): .spec.i";
        assert_eq!(
            (integer.column_type.as_str(), integer.description.as_str(), integer.priority),
            ("integer", description, 1)
        );
    }

    #[test]
    fn versions_without_columns_show_the_age() {
        let object = json!({"metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:59:18Z"}});
        for version in [json!({}), json!({"additionalPrinterColumns": []})] {
            let table = columns(&version);
            let [_, age] = &table.columns()[..] else { panic!("{:?}", table.columns()) };
            assert_eq!((age.name.as_str(), age.column_type.as_str()), ("Age", "date"));
            assert!(age.description.starts_with("CreationTimestamp is a timestamp"));
            assert_eq!(table.cells(&object, NOW.parse().unwrap()), [json!("n"), json!("42s")]);
        }
    }

    #[test]
    fn columns_end_before_one_that_cannot_be_read() {
        let paths = [("string", ".kind"), ("string", ".a[x]"), ("string", ".kind")];
        assert_eq!(cells(&paths, &json!({"kind": "K", "metadata": {"name": "n"}})), [json!("n"), json!("K")]);
    }
}
