//! Reads files with the errors of Go's `os` package: `open F: no such file or directory`.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The error of a call to the system that concerns a file.
#[derive(Debug)]
pub struct FileError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// An error of the operation.
    pub fn new(operation: &'static str, path: &Path, source: io::Error) -> FileError {
        FileError { operation, path: path.to_owned(), source }
    }

    /// The number of the error; 0 if the system did not tell it.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or_default()
    }

    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.path.display(), system_error(&self.source))
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Reads a file as `os.ReadFile` does: opening a directory succeeds, reading it fails.
///
/// # Errors
/// When the file cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut file = File::open(path).map_err(|error| FileError::new("open", path, error))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| FileError::new("read", path, error))?;
    Ok(bytes)
}

/// The error of the system in Go's words, which begin with a small letter.
pub fn system_error(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    format!("{}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_go() {
        let check = |path: &str, expected: &str| {
            assert_eq!(read_file(Path::new(path)).unwrap_err().to_string(), expected);
        };
        check("/nowhere/f", "open /nowhere/f: no such file or directory");
        check("/proc", "read /proc: is a directory");
        check("/proc/version/f", "open /proc/version/f: not a directory");
        assert!(read_file(Path::new("/nowhere")).unwrap_err().is_not_found());
    }
}
