//! Which objects of a collection a list or watch is about: label and field selectors over what the cache knows of each.

use super::Exchange;
use pintle_cacher::{CachedObject, Trigger};
use pintle_machinery::{
    Status,
    error_list::quote,
    options::ListOptions,
    selectors::{FieldOperator, LabelSelector},
};

/// The parsed selectors of one request.
pub(super) struct Selection {
    labels: LabelSelector,
    fields: Vec<FieldTerm>,
    /// The one name that can match, if the field selector asks for one.
    pub(super) name: Option<String>,
}

/// One requirement on a field.
struct FieldTerm {
    field: Field,
    equal: bool,
    value: String,
}

/// Where a field's value is found on a cached object.
enum Field {
    Name,
    Namespace,
    Declared { index: usize, name: String, trigger: bool },
}

impl Selection {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// 400 when a selector does not parse or names a field that the resource does not select by.
    pub(super) fn parse(exchange: &Exchange<'_>, options: &ListOptions) -> Result<Selection, Status> {
        let labels = options.label_selector.clone();
        let resource = &exchange.resource.resource;
        // Built-in kinds that declare no fields take the two of the metadata, whatever their scope.
        let is_plain = resource.selectable_fields.is_empty() && !exchange.resource.schema.is_custom();
        let mut fields = Vec::new();
        for term in options.field_selector.terms() {
            let field = match term.field.as_str() {
                "metadata.name" => Field::Name,
                "metadata.namespace" if resource.is_namespaced() || is_plain => Field::Namespace,
                name => match resource
                    .selectable_fields
                    .iter()
                    .position(|field| field.name == name && !field.of_other_version)
                {
                    Some(index) => Field::Declared {
                        index,
                        name: name.to_owned(),
                        trigger: resource.selectable_fields.get(index).is_some_and(|field| field.trigger),
                    },
                    None => {
                        return Err(Status::bad_request(match resource.unsupported_field {
                            Some(refusal) => refusal(name),
                            None if is_plain => format!(
                                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                                quote(name)
                            ),
                            None => format!("field label not supported: {name}"),
                        }));
                    }
                },
            };
            fields.push(FieldTerm {
                field,
                equal: term.operator == FieldOperator::Equals,
                value: term.value.clone(),
            });
        }
        let named = fields.iter().find(|term| term.equal && matches!(term.field, Field::Name));
        let name = named.map(|term| term.value.clone());
        Ok(Selection { labels, fields, name })
    }

    /// Whether nothing is asked.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is selected.
    pub(super) fn matches(&self, object: &CachedObject) -> bool {
        self.fields.iter().all(|term| {
            let value = match &term.field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace(),
                Field::Declared { index, .. } => object.field(*index).unwrap_or_default(),
            };
            (value == term.value) == term.equal
        }) && self.labels.matches(|key| object.labels().get(key))
    }

    /// The field by which a watcher of this selection is found.
    pub(super) fn trigger(&self) -> Option<Trigger> {
        let triggered = |term: &&FieldTerm| {
            term.equal && matches!(&term.field, Field::Name | Field::Declared { trigger: true, .. })
        };
        let term = self.fields.iter().find(triggered)?;
        let field = match &term.field {
            Field::Declared { name, .. } => name.as_str(),
            _ => "metadata.name",
        };
        Some(Trigger { field: field.into(), value: term.value.as_str().into() })
    }
}
