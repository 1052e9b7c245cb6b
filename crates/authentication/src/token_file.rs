//! Authenticates static tokens from a file
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file>).

use crate::group::with_authenticated_group;
use pintle_auth::{
    BoxFuture,
    authn::{Authenticated, Authentication, TokenAuthenticator},
};
use pintle_go_forms::{CsvError, CsvReader, FileError, read_file};
use pintle_machinery::UserInfo;
use std::{collections::HashMap, future::ready, path::Path, sync::Arc};

/// The users of a token file. Tokens are kept in memory in the clear and never printed.
pub struct TokenFile {
    users: HashMap<String, Arc<UserInfo>>,
}

/// The reason why a token file cannot be used. Never contains a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// The file is not UTF-8.
    #[error("token file '{0}' is not UTF-8")]
    Encoding(String),
    /// A quote is out of place.
    #[error(transparent)]
    Csv(CsvError),
    /// A record has too few columns.
    #[error("token file '{path}' must have at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// The file.
        path: String,
        /// The number of its columns.
        found: usize,
    },
}

impl TokenFile {
    /// Reads a file of lines `token,user,uid,"group1,group2"`.
    ///
    /// # Errors
    /// When the file cannot be read or a line is malformed.
    pub fn read(path: &Path) -> Result<TokenFile, TokenFileError> {
        let name = path.display().to_string();
        let text = String::from_utf8(read_file(path)?).map_err(|_| TokenFileError::Encoding(name.clone()))?;
        let mut users = HashMap::new();
        let mut reader = CsvReader::new(&text);
        for number in 1_usize.. {
            let columns = match reader.record() {
                Ok(columns) => columns,
                Err(CsvError::EndOfFile) => break,
                Err(error) => return Err(TokenFileError::Csv(error)),
            };
            let [token, user, uid, rest @ ..] = columns.as_slice() else {
                return Err(TokenFileError::Columns { path: name, found: columns.len() });
            };
            if token.is_empty() {
                tracing::warn!("empty token has been found in token file '{name}', record number '{number}'");
                continue;
            }
            let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect());
            let user = UserInfo {
                name: user.clone(),
                uid: uid.clone(),
                groups: groups.unwrap_or_default(),
                ..UserInfo::default()
            };
            if users.insert(token.clone(), with_authenticated_group(Arc::new(user))).is_some() {
                tracing::warn!(
                    "duplicate token has been found in token file '{name}', record number '{number}'"
                );
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::fs;

    #[test]
    fn users_are_read_by_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.csv");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            TokenFile::read(&path)
        };
        let file =
            read("t1,jane,7,\"devs, ops\"\n\n,nobody,1\nt2, joe,8\nt3,x,1,\nt2,joe,8\n#t4,y,1\n").unwrap();
        let user = |token: &str| {
            let found = file.authenticate_token(token, &[]).now_or_never().unwrap().unwrap();
            found.map(|found| (found.user.name.clone(), found.user.uid.clone(), found.user.groups.clone()))
        };
        let groups = |groups: &[&str]| groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>();
        let jane = ("jane".to_owned(), "7".to_owned(), groups(&["devs", " ops", "system:authenticated"]));
        assert_eq!(user("t1"), Some(jane));
        let joe = ("joe".to_owned(), "8".to_owned(), groups(&["system:authenticated"]));
        assert_eq!(user("t2"), Some(joe));
        // An empty column is a group without a name.
        assert_eq!(user("t3").unwrap().2, ["", "system:authenticated"]);
        assert!(user("#t4").is_some(), "there are no comments");
        assert_eq!(user("t4"), None);
        assert_eq!(user(""), None);

        let check =
            |text: &str, expected: String| assert_eq!(read(text).err().unwrap().to_string(), expected);
        let columns = "must have at least 3 columns (token, user name, user uid), found";
        check("t1,jane,7\nsecret,joe", format!("token file '{}' {columns} 2", path.display()));
        let quote = "parse error on line 1, column 8: extraneous or missing \" in quoted-field";
        check("t,u,1,\"\"a\"", quote.to_owned());
        let missing = dir.path().join("none");
        let error = TokenFile::read(&missing).err().unwrap().to_string();
        assert_eq!(error, format!("open {}: no such file or directory", missing.display()));
    }
}
