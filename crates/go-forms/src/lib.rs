//! Reads and writes texts as Go's standard library does, with its error messages, which clients see: quotes, durations,
//! base64, IP addresses and URLs.
//!
//! Each module names the Go package that it follows. Parsers accept and refuse the same texts as Go's, and report the
//! same error for a text with several.

pub mod base64;
mod bool;
mod duration;
mod ip;
mod quote;
mod url;

pub use bool::parse_bool;
pub use duration::{format_duration, parse_duration};
pub use ip::{Address, Cidr, parse_address, parse_ip_sloppy};
pub use quote::{is_print, quote, quote_ascii, quote_byte, quote_bytes, unicode_name};
pub use url::{Url, clean_path, encode_query, escape_path, normalize_path, normalize_query};
