//! Defines the conversion of objects to table rows
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>).

use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, json, meta};

/// One cell: a JSON string, number or boolean.
pub type Cell = Value;

/// A column's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading, such as `Ready`.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub column_type: String,
    /// `name` for the name column, otherwise mostly "".
    pub format: String,
    /// The description that clients can show.
    pub description: String,
    /// 0 is always shown; columns with higher numbers are shown only in wide output.
    pub priority: i32,
}

impl Column {
    /// A column of strings.
    pub fn string(name: &str, priority: i32, description: &str) -> Column {
        Column {
            name: name.to_owned(),
            column_type: "string".to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority,
        }
    }

    /// The column of the object's name.
    pub fn name() -> Column {
        Column { format: "name".to_owned(), ..Column::string("Name", 0, NAME_DESCRIPTION) }
    }

    /// The column of the object's age.
    pub fn age() -> Column {
        Column::string("Age", 0, AGE_DESCRIPTION)
    }

    /// Sets a type other than string.
    #[must_use]
    pub fn of_type(mut self, column_type: &str) -> Column {
        self.column_type = column_type.to_owned();
        self
    }
}

const NAME_DESCRIPTION: &str =
    "The name of the object, unique among the objects of its kind in its namespace.";
const AGE_DESCRIPTION: &str = "How long ago the server made the object.";

/// Converts objects of one kind to rows.
pub trait TableConvertor: Send + Sync {
    /// The columns.
    fn columns(&self) -> Vec<Column>;

    /// The cells of one object, one for each column. Ages are relative to `now`.
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Cell>;

    /// Whether the cells read nothing but the object's metadata, so that the rest of it need not be decoded.
    fn reads_metadata_only(&self) -> bool {
        false
    }

    /// `conditions` of the object's row, such as `Completed` for pods that have ended.
    fn row_conditions(&self, _object: &Value) -> Vec<Value> {
        Vec::new()
    }

    /// Whether a list without objects has no list of rows, as Go encodes a slice that nothing was appended to.
    fn has_null_rows(&self) -> bool {
        false
    }

    /// The rank of an object: the rows of a list are sorted by it, lowest first, and equal ones by their keys. `None`
    /// for kinds whose rows keep the order of the list.
    fn rank(&self) -> Option<fn(&Value) -> i64> {
        None
    }
}

/// The zero time of Go.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The table of a kind without columns of its own: `Name` and `Created At`.
#[derive(Debug, Default, Clone, Copy)]
pub struct DefaultTable;

impl TableConvertor for DefaultTable {
    fn columns(&self) -> Vec<Column> {
        vec![Column::name(), Column::string("Created At", 0, AGE_DESCRIPTION).of_type("date")]
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Cell> {
        let created = object.str_at("metadata.creationTimestamp");
        // The object of a bookmark has no time, which is the zero time here.
        let created = meta::parse_time(created).map_or_else(|| ZERO_TIME.to_owned(), meta::format_time);
        vec![json!(object.str_at("metadata.name")), json!(created)]
    }

    fn reads_metadata_only(&self) -> bool {
        true
    }

    fn has_null_rows(&self) -> bool {
        true
    }
}
