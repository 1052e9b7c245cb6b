//! Reads the files of a directory.

use pintle_config_metrics::content_hash;
use pintle_go_forms::{FileError, quote, read_file};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The manifests of a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Directory {
    /// In the order of the names of the files.
    pub(super) documents: Vec<Document>,
    /// The hash of the contents of all files; "" without content.
    pub(super) hash: String,
}

/// A document of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) file: PathBuf,
    pub(super) text: Vec<u8>,
}

impl Directory {
    /// Reads the files with the endings of YAML and JSON.
    ///
    /// # Errors
    /// When the directory or a file cannot be read, or something follows the mark between two documents.
    pub(super) fn read(path: &Path) -> Result<Directory, String> {
        let shown = |path: &Path| quote(&path.to_string_lossy());
        let files = files(path).map_err(|error| {
            format!(
                "failed to read manifest directory {}: {}",
                shown(path),
                FileError::new("open", path, error)
            )
        })?;
        let mut directory = Directory::default();
        let mut contents = Vec::new();
        for file in files {
            let content =
                read(&file).map_err(|error| format!("failed to read file {}: {error}", shown(&file)))?;
            if content.is_empty() {
                continue;
            }
            contents.extend_from_slice(&content);
            contents.push(0);
            let texts = documents(&content).map_err(|error| {
                format!("failed to split YAML documents in file {}: {error}", shown(&file))
            })?;
            let document = |text| Document { file: file.clone(), text };
            directory.documents.extend(texts.into_iter().map(document));
        }
        directory.hash = content_hash(&contents);
        Ok(directory)
    }
}

/// Reads a file. A pipe or a device, which may never end or even begin, is an error.
fn read(file: &Path) -> Result<Vec<u8>, FileError> {
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Err(FileError::new("read", file, io::Error::other("not a regular file")));
    }
    read_file(file)
}

/// The files whose names end as those of manifests, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, io::Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
        if is_manifest && !entry.file_type()?.is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The documents of a YAML stream, without empty ones. As in the reference, a document keeps the mark before it unless
/// that mark ends another document.
fn documents(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut documents: Vec<Vec<u8>> = Vec::new();
    let mut current = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(b"---").map(<[u8]>::trim_ascii) {
            if !rest.is_empty() && !rest.starts_with(b"#") {
                let rest = String::from_utf8_lossy(rest);
                return Err(format!("invalid Yaml document separator: {rest}"));
            }
            if !current.is_empty() {
                documents.push(std::mem::take(&mut current));
                continue;
            }
        }
        current.extend_from_slice(line);
    }
    documents.push(current);
    let trimmed = documents.iter().map(|document| document.trim_ascii());
    Ok(trimmed.filter(|document| !document.is_empty()).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_split_at_its_marks() {
        let check = |text: &str, expected: Result<&[&str], &str>| {
            let found = documents(text.as_bytes()).map(|documents| {
                let texts = documents.into_iter().map(|document| String::from_utf8(document).unwrap());
                texts.collect::<Vec<_>>()
            });
            let found = found.as_ref().map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(
                found,
                expected.map(<[&str]>::to_vec).map_err(str::to_owned).as_ref().cloned(),
                "{text:?}"
            );
        };
        check("", Ok(&[]));
        check("a: 1", Ok(&["a: 1"]));
        check("a: 1\n---\nb: 1\n--- # c\n\n", Ok(&["a: 1", "b: 1"]));
        check("---\na: 1\n---\n", Ok(&["---\na: 1"]));
        check("---\n---\na: 1\n", Ok(&["---", "a: 1"]));
        check("a: |\n  x\n  ---\n", Ok(&["a: |\n  x\n  ---"]));
        check("a: 1\n--- b\n", Err("invalid Yaml document separator: b"));
    }

    #[test]
    fn what_may_never_end_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.yaml");
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let shown = file.display();
        assert_eq!(
            Directory::read(dir.path()).unwrap_err(),
            format!("failed to read file \"{shown}\": read {shown}: not a regular file")
        );
    }

    #[test]
    fn files_are_read_in_the_order_of_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        for (name, content) in
            [("b.yml", "b"), ("a.YAML", "a"), ("c.json", ""), ("c.txt", "t"), (".yaml", "hidden")]
        {
            fs::write(path.join(name), content).unwrap();
        }
        fs::create_dir(path.join("d.yaml")).unwrap();
        let directory = Directory::read(path).unwrap();
        let document = |file: &str, text: &str| Document { file: path.join(file), text: text.into() };
        assert_eq!(
            directory.documents,
            [document(".yaml", "hidden"), document("a.YAML", "a"), document("b.yml", "b")]
        );
        assert_eq!(directory.hash, content_hash(b"hidden\0a\0b\0"));
        // The names are of no account.
        fs::rename(path.join("b.yml"), path.join("b.json")).unwrap();
        assert_eq!(Directory::read(path).unwrap().hash, directory.hash);
        assert_eq!(
            Directory::read(Path::new("/nowhere")).unwrap_err(),
            "failed to read manifest directory \"/nowhere\": open /nowhere: no such file or directory"
        );
    }
}
