//! Label selectors (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>).

use super::SelectorError;
use super::compiled::CompiledRequirements;
use super::label_parser;
use super::label_requirement::{LabelOperator, LabelRequirement};
use crate::{Value, ValueExt};
use pintle_go_forms::quote;
use std::fmt;
use std::sync::Arc;

/// The maximum number of requirements that are evaluated one by one.
const FEW_REQUIREMENTS: usize = 8;

/// Requirements that an object's labels must all meet. Without requirements, every object is selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    /// Sorted by key.
    requirements: Vec<LabelRequirement>,
    /// The requirements combined by key, when they are many.
    compiled: Option<Arc<CompiledRequirements>>,
    /// Whether the selector selects nothing, as an absent `LabelSelector` object does.
    nothing: bool,
}

impl LabelSelector {
    /// Selects every object.
    pub fn everything() -> LabelSelector {
        LabelSelector::default()
    }

    /// Selects no object.
    pub fn nothing() -> LabelSelector {
        LabelSelector { nothing: true, ..LabelSelector::default() }
    }

    /// Selects objects that meet all of these requirements.
    pub fn from_requirements(mut requirements: Vec<LabelRequirement>) -> LabelSelector {
        requirements.sort_by(|one, other| one.key().cmp(other.key()));
        let is_long = requirements.len() > FEW_REQUIREMENTS;
        let compiled = is_long.then(|| Arc::new(CompiledRequirements::new(&requirements)));
        LabelSelector { requirements, compiled, nothing: false }
    }

    /// Parses the text form: `app=web,tier in (a, b),!legacy`.
    ///
    /// # Errors
    /// [`SelectorError`], when the text is malformed.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        let requirements = label_parser::parse(text).map_err(SelectorError)?;
        Ok(Self::from_requirements(requirements))
    }

    /// Converts a `LabelSelector` object. An absent one selects nothing, an empty one everything.
    ///
    /// # Errors
    /// [`SelectorError`], when a requirement is malformed.
    pub fn from_object(selector: Option<&Value>) -> Result<LabelSelector, SelectorError> {
        let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.map_at("matchLabels") {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(LabelRequirement::new(key, LabelOperator::Equals, vec![value])?);
        }
        for expression in selector.items_at("matchExpressions") {
            let operator = match expression.str_at("operator") {
                "In" => LabelOperator::In,
                "NotIn" => LabelOperator::NotIn,
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                other => {
                    return Err(SelectorError(format!(
                        "{} is not a valid label selector operator",
                        quote(other)
                    )));
                }
            };
            let values = expression.items_at("values").iter();
            let values = values.map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
            requirements.push(LabelRequirement::new(expression.str_at("key"), operator, values)?);
        }
        Ok(Self::from_requirements(requirements))
    }

    /// Converts a plain map of labels that must all be present, such as a Service's `spec.selector`. An absent or empty
    /// map selects everything.
    pub fn from_set(labels: Option<&Value>) -> LabelSelector {
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let requirements = labels.map(|(key, value)| {
            LabelRequirement::equals(key.to_string(), value.as_str().unwrap_or_default().to_owned())
        });
        Self::from_requirements(requirements.collect())
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// Names and values of labels that every selected object has.
    pub fn required_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.requirements.iter().filter_map(|requirement| {
            use LabelOperator::{DoubleEquals, Equals, In};
            match (requirement.operator(), requirement.values()) {
                (Equals | DoubleEquals | In, [value]) => Some((requirement.key(), value.as_str())),
                _ => None,
            }
        })
    }

    /// Whether evaluation takes more than a few comparisons for each object.
    pub fn is_long(&self) -> bool {
        self.compiled.is_some()
    }

    /// As [`LabelSelector::matches`], for labels that can be enumerated: the cost follows the smaller number, of labels
    /// or of required keys.
    pub fn matches_all<'a>(
        &self,
        labels: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
        label: impl Fn(&str) -> Option<&'a str>,
    ) -> bool {
        match &self.compiled {
            Some(compiled) if !self.nothing => compiled.matches(labels, label),
            _ => self.matches(label),
        }
    }

    /// Whether an object with these labels is selected. The function returns a label's value.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        if let Some(compiled) = &self.compiled {
            return !self.nothing && compiled.matches_each(label);
        }
        !self.nothing
            && self.requirements.iter().all(|requirement| requirement.matches(label(requirement.key())))
    }

    /// Whether an object with these labels (`metadata.labels`) is selected.
    pub fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.matches(|key| labels?.field(key)?.as_str())
    }

    /// The value that a label must have, if the selector allows only one.
    pub fn requires_exact_match(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key() == key)?;
        let exact = matches!(
            requirement.operator(),
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In
        );
        match requirement.values() {
            [value] if exact => Some(value),
            _ => None,
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// Formats a `LabelSelector` object for tables: `<none>` when it has no requirements, `<error>` when it is malformed.
pub fn format_label_selector(selector: Option<&Value>) -> String {
    match LabelSelector::from_object(selector) {
        Err(_) => "<error>".to_owned(),
        Ok(selector) => match selector.to_string() {
            text if text.is_empty() => "<none>".to_owned(),
            text => text,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    #[test]
    fn selectors_are_printed_as_they_are_understood() {
        let rows = [
            ("", ""),
            ("a", "a"),
            ("!a", "!a"),
            ("a=b", "a=b"),
            (" a == b , c!=d", "a==b,c!=d"),
            ("z,a in (c, b,b)", "a in (b,c),z"),
            ("a notin (),b", "a notin (),b"),
            ("a in (,b)", "a in (,b)"),
            ("a in (b,,c,)", "a in (,b,c)"),
            ("a>1,b<2", "a>1,b<2"),
            ("a=", "a="),
            ("a=,b", "a=,b"),
            ("in in (in,notin)", "in in (in,notin)"),
            ("notin", "notin"),
            ("x=in", "x=in"),
        ];
        for (text, printed) in rows {
            let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(selector.to_string(), printed, "{text}");
            assert_eq!(LabelSelector::parse(printed).unwrap(), selector);
        }
    }

    #[test]
    fn what_is_no_selector_says_why() {
        let rows = [
            ("=x", "found '=', expected: !, identifier, or 'end of string'"),
            (",a", "found ',', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
            ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
            ("a has (b)", "unable to parse requirement: found 'has', expected: in, notin, =, ==, !=, gt, lt"),
            ("a==!", "unable to parse requirement: found '!', expected: identifier"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must \
                 be an integer",
            ),
            (
                "a=-x-",
                "unable to parse requirement: values[0][a]: Invalid value: \"-x-\": a valid label must be an empty \
                 string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                 '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
            (
                "a$b",
                "unable to parse requirement: <nil>: Invalid value: \"a$b\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
                 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ];
        for (text, message) in rows {
            assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn labels_match() {
        let labels = json!({"app": "web", "size": "5", "empty": ""});
        let rows = [
            ("", true),
            ("app=web", true),
            ("app!=web", false),
            ("app in (db,web)", true),
            ("app notin (db)", true),
            ("none!=x", true),
            ("none notin (x)", true),
            ("none", false),
            ("!none", true),
            ("empty", true),
            ("empty=", true),
            ("none=", false),
            ("size>4", true),
            ("size<5", false),
            ("app>1", false),
            ("app=web,size=6", false),
        ];
        for (text, matches) in rows {
            assert_eq!(LabelSelector::parse(text).unwrap().matches_labels(Some(&labels)), matches, "{text}");
        }
        assert!(!LabelSelector::from_object(None).unwrap().matches_labels(Some(&labels)));
        assert!(LabelSelector::from_object(Some(&json!({}))).unwrap().matches_labels(None));
    }

    #[test]
    fn objects_are_selectors_too() {
        let selector = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
        ]});
        let parsed = LabelSelector::from_object(Some(&selector)).unwrap();
        assert_eq!(parsed.to_string(), "a in (x,y),b=1,!c");
        assert_eq!((parsed.requires_exact_match("b"), parsed.requires_exact_match("a")), (Some("1"), None));
        let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Is"}]});
        assert_eq!(
            LabelSelector::from_object(Some(&wrong)).unwrap_err().to_string(),
            "\"Is\" is not a valid label selector operator"
        );
        assert_eq!(format_label_selector(Some(&wrong)), "<error>");
        assert_eq!(format_label_selector(None), "<none>");
    }
}
