//! What decoding finds at the paths of a body, beside the tree.

/// The maximum number of findings of a kind.
const MAX_FINDINGS: usize = 100;
/// The maximum size of their paths together, in bytes: paths contain keys, which may be as long as a body.
const MAX_PATH_BYTES: usize = 256 * 1024;

/// What was found so far at some paths, up to a maximum.
pub(super) struct Findings<T> {
    pub(super) found: Vec<T>,
    path_bytes: usize,
    paths: Paths,
}

/// The form of the paths of findings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Paths {
    /// Each path is reported once.
    Full,
    /// Without the keys of maps. The same path may stand for several fields, and is reported for each of them.
    WithoutKeys,
}

impl<T: PartialEq> Findings<T> {
    pub(super) fn with(paths: Paths) -> Findings<T> {
        Findings { found: Vec::new(), path_bytes: 0, paths }
    }

    /// Adds the finding at a path, which `join` writes in the form of these findings.
    pub(super) fn report(&mut self, join: impl FnOnce(Paths) -> String, finding: impl FnOnce(String) -> T) {
        if self.found.len() >= MAX_FINDINGS || self.path_bytes >= MAX_PATH_BYTES {
            return;
        }
        let path = join(self.paths);
        self.path_bytes += path.len();
        let finding = finding(path);
        if self.paths == Paths::WithoutKeys || !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }
}
