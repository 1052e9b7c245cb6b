//! The forms of the objects of one resource.

use pintle_machinery::{Value, ValueExt, meta::ObjectMeta};
use std::{collections::HashMap, sync::Arc};

/// Objects with the forms that were made of them, in the order of the objects.
pub(crate) struct Forms<T>(Vec<(Arc<Value>, Arc<T>)>);

impl<T> Forms<T> {
    /// The forms, in the order of the objects.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.iter().map(|(_, form)| form)
    }

    /// Whether these are the forms of all these objects, in the state that they are in.
    pub(crate) fn are_of(&self, objects: &[Arc<Value>]) -> bool {
        self.0.len() == objects.len()
            && self.0.iter().zip(objects).all(|((own, _), other)| is_same(own, other))
    }

    /// The forms of other objects: the same for those that are unchanged.
    pub(crate) fn updated(&self, objects: Vec<Arc<Value>>, make: impl Fn(&Arc<Value>) -> T) -> Forms<T> {
        let by_name: HashMap<&str, &(Arc<Value>, Arc<T>)> =
            self.0.iter().map(|entry| (entry.0.name(), entry)).collect();
        let form = |object: Arc<Value>| match by_name.get(object.name()) {
            Some((own, form)) if is_same(own, &object) => (own.clone(), form.clone()),
            _ => {
                let form = Arc::new(make(&object));
                (object, form)
            }
        };
        Forms(objects.into_iter().map(form).collect())
    }
}

impl<T> Default for Forms<T> {
    fn default() -> Forms<T> {
        Forms(Vec::new())
    }
}

/// Whether two objects are one, in one state. An object that the cache has decoded again is another tree.
fn is_same(one: &Arc<Value>, other: &Arc<Value>) -> bool {
    let field = |path: &str| one.str_at(path) == other.str_at(path);
    Arc::ptr_eq(one, other) || field("metadata.uid") && field("metadata.resourceVersion")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn forms_are_kept_while_their_objects_are_unchanged() {
        let object = |name: &str, uid: &str, version: &str| {
            Arc::new(json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}}))
        };
        let make = |object: &Arc<Value>| object.str_at("metadata.resourceVersion").to_owned();
        let first = vec![object("a", "1", "10"), object("b", "2", "20"), object("c", "3", "30")];
        let forms = Forms::default().updated(first.clone(), make);
        assert!(forms.are_of(&first));
        // Decoded again, changed, recreated with another uid.
        let second = vec![object("a", "1", "10"), object("b", "2", "21"), object("c", "4", "30")];
        assert!(!forms.are_of(&second) && !forms.are_of(&first[..2]));
        let updated = forms.updated(second.clone(), make);
        assert!(updated.are_of(&second));
        let is_kept: Vec<bool> =
            forms.iter().zip(updated.iter()).map(|(one, other)| Arc::ptr_eq(one, other)).collect();
        assert_eq!(is_kept, [true, false, false]);
        assert_eq!(updated.iter().nth(1).unwrap().as_str(), "21");
    }
}
