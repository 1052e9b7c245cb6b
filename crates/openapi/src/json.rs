//! Writes a large JSON object member by member, so that it is never in memory as a whole.

use pintle_machinery::Value;
use std::io::{self, Write};

/// The writer of an object.
pub(crate) struct Members<'w, W: Write> {
    out: &'w mut W,
    is_empty: bool,
}

impl<'w, W: Write> Members<'w, W> {
    /// Starts an object.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn start(out: &'w mut W) -> io::Result<Members<'w, W>> {
        out.write_all(b"{")?;
        Ok(Members { out, is_empty: true })
    }

    /// Continues an object that was started elsewhere and has members.
    pub(crate) fn resume(out: &'w mut W) -> Members<'w, W> {
        Members { out, is_empty: false }
    }

    /// Writes a member.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn member(&mut self, name: &str, value: &Value) -> io::Result<()> {
        let out = self.name(name)?;
        serde_json::to_writer(out, value)?;
        Ok(())
    }

    /// Starts a member that is an object.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn object(&mut self, name: &str) -> io::Result<Members<'_, W>> {
        Members::start(self.name(name)?)
    }

    /// Ends the object.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn end(self) -> io::Result<()> {
        self.out.write_all(b"}")
    }

    fn name(&mut self, name: &str) -> io::Result<&mut W> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *self.out, name)?;
        self.out.write_all(b":")?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn members_make_an_object() -> io::Result<()> {
        let mut out = Vec::new();
        let mut members = Members::start(&mut out)?;
        members.member("a\"", &json!(1))?;
        let mut inner = members.object("b")?;
        inner.member("c", &json!([2]))?;
        inner.member("d", &json!({}))?;
        inner.end()?;
        members.object("e")?.end()?;
        members.end()?;
        assert_eq!(String::from_utf8_lossy(&out), r#"{"a\"":1,"b":{"c":[2],"d":{}},"e":{}}"#);
        Ok(())
    }
}
