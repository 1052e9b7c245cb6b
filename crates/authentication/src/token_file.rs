//! Authenticates static tokens from a file
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file>).

use crate::group::with_authenticated_group;
use pintle_auth::{
    BoxFuture,
    authn::{Authenticated, Authentication, TokenAuthenticator},
};
use pintle_machinery::UserInfo;
use std::{collections::HashMap, fs, future::ready, io, path::Path, sync::Arc};

/// The users of a token file. Tokens are kept in memory in the clear and never printed.
pub struct TokenFile {
    users: HashMap<String, Arc<UserInfo>>,
}

/// The reason why a token file cannot be used. Never contains a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("token file {path} cannot be read")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A line has too few columns, or an empty token.
    #[error("token file {path}, line {line}: expected token,user,uid[,\"groups\"]")]
    Line {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
    },
}

impl TokenFile {
    /// Reads a file of lines `token,user,uid,"group1,group2"`.
    ///
    /// # Errors
    /// When the file cannot be read or a line is malformed.
    pub fn read(path: &Path) -> Result<TokenFile, TokenFileError> {
        let name = path.display().to_string();
        let text =
            fs::read_to_string(path).map_err(|source| TokenFileError::Read { path: name.clone(), source })?;
        let mut users = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let columns = csv_columns(line);
            let [token, user, uid, rest @ ..] = columns.as_slice() else {
                return Err(TokenFileError::Line { path: name, line: index + 1 });
            };
            if token.is_empty() {
                return Err(TokenFileError::Line { path: name, line: index + 1 });
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups: Vec<String> = groups
                .split(',')
                .map(str::trim)
                .filter(|group| !group.is_empty())
                .map(str::to_owned)
                .collect();
            let user = UserInfo { name: user.clone(), uid: uid.clone(), groups, ..UserInfo::default() };
            users.insert(token.clone(), with_authenticated_group(Arc::new(user)));
        }
        Ok(TokenFile { users })
    }
}

impl TokenAuthenticator for TokenFile {
    fn authenticate_token<'a>(&'a self, token: &'a str, _: &'a [String]) -> BoxFuture<'a, Authentication> {
        let user = self.users.get(token).cloned();
        Box::pin(ready(Ok(user.map(|user| Authenticated { user, ..Authenticated::default() }))))
    }
}

/// Splits a CSV line into columns, with quoting.
fn csv_columns(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                if let Some(last) = columns.last_mut() {
                    last.push('"');
                }
            }
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            c => {
                if let Some(last) = columns.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    columns.iter().map(|column| column.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn users_are_read_by_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.csv");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            TokenFile::read(&path)
        };
        let file = read("# users\n\nt1,jane,7,\"devs, ops\"\nt2,joe,8\n").unwrap();
        let user = |token: &str| {
            let found = file.authenticate_token(token, &[]).now_or_never().unwrap().unwrap();
            found.map(|found| (found.user.name.clone(), found.user.uid.clone(), found.user.groups.clone()))
        };
        let groups = |groups: &[&str]| groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>();
        let jane = ("jane".to_owned(), "7".to_owned(), groups(&["devs", "ops", "system:authenticated"]));
        assert_eq!(user("t1"), Some(jane));
        let joe = ("joe".to_owned(), "8".to_owned(), groups(&["system:authenticated"]));
        assert_eq!(user("t2"), Some(joe));
        assert_eq!(user("t3"), None);
        assert_eq!(user(""), None);

        let shown = path.display();
        for (text, line) in [("t1,jane,7\nsecret,joe", 2), (",jane,7", 1)] {
            let error = read(text).err().unwrap().to_string();
            assert_eq!(
                error,
                format!("token file {shown}, line {line}: expected token,user,uid[,\"groups\"]")
            );
        }
        let missing = TokenFile::read(&dir.path().join("none")).err().unwrap().to_string();
        assert!(missing.ends_with("none cannot be read"), "{missing}");
    }

    #[test]
    fn quotes_hold_groups_together() {
        assert_eq!(csv_columns(r#"t, u,1,"a,b""#), ["t", "u", "1", "a,b"]);
        assert_eq!(csv_columns(r#"t,u,1,"a""b""#), ["t", "u", "1", "a\"b"]);
    }
}
