//! Reads and writes texts as Go's standard library does, with its error messages, which clients see: quotes, durations,
//! numbers, base64, PEM, CSV, IP addresses, media types and URLs, and the errors of files.
//!
//! Each module names the Go package that it follows. Parsers accept and refuse the same texts as Go's, and report the
//! same error for a text with several.

pub mod base64;
mod bool;
mod case;
mod csv;
mod duration;
mod file;
mod ip;
mod media_type;
mod number;
mod pem;
mod quote;
mod url;

pub use bool::parse_bool;
pub use case::to_lower;
pub use csv::{CsvError, CsvReader};
pub use duration::{format_duration, parse_duration};
pub use file::{FileError, read_file, system_error};
pub use ip::{Address, Cidr, parse_address, parse_ip_sloppy};
pub use media_type::{media_type, media_type_error};
pub use number::{
    parse_float, parse_float32, parse_integer, shortest_decimal, shortest_scientific, shortest_scientific32,
};
pub use pem::{PemBlock, PemBlocks};
pub use quote::{is_print, quote, quote_ascii, quote_byte, quote_bytes, unicode_name};
pub use url::{Url, clean_path, encode_query, escape_path, normalize_path, normalize_query};
