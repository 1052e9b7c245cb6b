//! The conditions that a request sets on the stored object.

use crate::{Value, meta::ObjectMeta};

/// The conditions that the stored object must meet for a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The required uid.
    pub uid: Option<String>,
    /// The required resourceVersion.
    pub resource_version: Option<String>,
}

/// A condition that an object does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnmetPrecondition<'a> {
    field: &'static str,
    wanted: &'a str,
    actual: &'a str,
}

impl Preconditions {
    /// Requires a uid.
    pub fn uid(uid: &str) -> Preconditions {
        Preconditions { uid: Some(uid.to_owned()), resource_version: None }
    }

    /// Requires a resourceVersion.
    pub fn resource_version(version: &str) -> Preconditions {
        Preconditions { uid: None, resource_version: Some(version.to_owned()) }
    }

    /// Drops conditions that require an empty text.
    pub fn without_empty(self) -> Preconditions {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        Preconditions { uid: filled(self.uid), resource_version: filled(self.resource_version) }
    }

    /// The first condition that an object does not meet: that on its uid, then that on its resourceVersion.
    pub fn unmet_by<'a>(&'a self, object: &'a Value) -> Option<UnmetPrecondition<'a>> {
        [
            ("UID", &self.uid, object.uid()),
            ("ResourceVersion", &self.resource_version, object.resource_version()),
        ]
        .into_iter()
        .find_map(|(field, wanted, actual)| {
            let wanted = wanted.as_deref().filter(|wanted| *wanted != actual)?;
            Some(UnmetPrecondition { field, wanted, actual })
        })
    }
}

impl UnmetPrecondition<'_> {
    /// The reason for the refusal of a change.
    pub fn of_change(&self) -> String {
        let UnmetPrecondition { field, wanted, actual } = self;
        format!("Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {actual}")
    }

    /// The reason for the refusal of a delete.
    pub fn of_delete(&self) -> String {
        let UnmetPrecondition { field, wanted, actual } = self;
        let presumption = match *field {
            "UID" => "deleted and then recreated",
            _ => "modified",
        };
        format!(
            "the {field} in the precondition ({wanted}) does not match the {field} in record ({actual}). The object \
             might have been {presumption}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn the_uid_is_compared_before_the_resource_version() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        let both = |uid: &str, version: &str| Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
        };
        let reasons = |wanted: &Preconditions| {
            wanted.unmet_by(&object).map(|unmet| (unmet.of_change(), unmet.of_delete()))
        };
        assert_eq!(reasons(&Preconditions::default()), None);
        assert_eq!(reasons(&both("u", "7")), None);
        let (change, delete) = reasons(&both("v", "8")).unwrap();
        assert_eq!(change, "Precondition failed: UID in precondition: v, UID in object meta: u");
        assert_eq!(
            delete,
            "the UID in the precondition (v) does not match the UID in record (u). The object might have been deleted \
             and then recreated"
        );
        let (change, delete) = reasons(&Preconditions::resource_version("8")).unwrap();
        assert_eq!(
            change,
            "Precondition failed: ResourceVersion in precondition: 8, ResourceVersion in object meta: 7"
        );
        assert_eq!(
            delete,
            "the ResourceVersion in the precondition (8) does not match the ResourceVersion in record (7). The object \
             might have been modified"
        );
        // An empty text is a condition that no stored object meets, unless it is dropped.
        assert!(Preconditions::uid("").unmet_by(&object).is_some());
        assert_eq!(reasons(&both("", "").without_empty()), None);
        assert!(Preconditions::uid("u").unmet_by(&Value::Null).is_some());
    }
}
