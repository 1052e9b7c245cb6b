//! The selectors of requests for several objects.

use pintle_machinery::{
    FieldSelector, LabelSelector,
    selectors::{FieldTerm, LabelRequirement},
};

/// The selectors of a list, watch or deletecollection request, for authorizers that support them. Unparsable
/// requirements are left out: the attributes then request more objects, never fewer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selectors {
    /// The requirements on fields.
    pub field_terms: Vec<FieldTerm>,
    /// The reason why requirements of the field selector were left out; empty when none was.
    pub field_error: String,
    /// The requirements on labels.
    pub label_requirements: Vec<LabelRequirement>,
    /// The reason why requirements of the label selector were left out; empty when none was.
    pub label_error: String,
}

impl Selectors {
    /// Parses the selectors of a request; "" selects everything.
    pub fn parse(field_selector: &str, label_selector: &str) -> Selectors {
        let mut selectors = Selectors::default();
        match FieldSelector::parse(field_selector) {
            Ok(selector) => selectors.field_terms = selector.terms().to_vec(),
            Err(error) => selectors.field_error = error.to_string(),
        }
        match LabelSelector::parse(label_selector) {
            Ok(selector) => selectors.label_requirements = selector.requirements().to_vec(),
            Err(error) => selectors.label_error = error.to_string(),
        }
        selectors
    }

    /// The number of bytes of all requirements, approximately.
    pub fn size(&self) -> usize {
        let fields = self.field_terms.iter().map(|term| term.field.len() + term.value.len());
        let labels = self.label_requirements.iter().map(|requirement| {
            requirement.key().len() + requirement.values().iter().map(String::len).sum::<usize>()
        });
        fields.chain(labels).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Selectors;

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let selectors = Selectors::parse("spec.nodeName=a,metadata.name!=b", "app in (x, y),!old");
        assert_eq!((selectors.field_terms.len(), selectors.label_requirements.len()), (2, 2));
        assert!(selectors.field_error.is_empty() && selectors.label_error.is_empty());
        let selectors = Selectors::parse("a", "a=(");
        assert_eq!((selectors.field_terms.len(), selectors.label_requirements.len()), (0, 0));
        assert!(!selectors.field_error.is_empty() && !selectors.label_error.is_empty());
        assert_eq!(Selectors::parse("", ""), Selectors::default());
    }
}
