//! Decodes the server's configuration files: versioned objects in YAML or JSON, such as `EncryptionConfiguration`
//! (<https://kubernetes.io/docs/reference/config-api/>).
//!
//! Kind and version are checked first; then the fields are decoded by a schema, which a [`ConfigTypes`] builds. Errors
//! have the texts of Kubernetes' strict decoder. They name fields and types and contain no value except kind and
//! version, since files may have secrets; for the same reason the converted text is overwritten after use.

use crate::{
    Value,
    codec::{DecodeError, Decoded, StrictProblem, json, yaml},
    scheme,
    text::go_json_type,
};
use pintle_go_forms::parse_duration;
use pintle_schema::{
    FieldSpec, ListType, NodeId, Omit, Schema, SchemaBuilder, SchemaRef, StructSpec, Structural, Type,
};
use zeroize::Zeroizing;

/// A kind of configuration file, with the schema of its fields.
#[derive(Debug)]
pub struct ConfigFile {
    kind: ConfigKind,
    schema: Schema,
    /// See [`ConfigFile::of_scheme`].
    scheme: Option<&'static str>,
    needs: Declared,
}

/// The type metadata that a file must declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declared {
    KindAndVersion,
    Version,
    Nothing,
}

/// The kind and versions that a configuration file must declare.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKind {
    /// The expected kind.
    pub kind: &'static str,
    /// The API group of the kind.
    pub group: &'static str,
    /// The accepted versions, the preferred one first. All have the same fields.
    pub versions: &'static [&'static str],
}

/// The reason why a text is not a configuration of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ConfigFileError {
    reason: String,
    is_other_kind: bool,
}

impl ConfigFileError {
    fn new(reason: String) -> ConfigFileError {
        ConfigFileError { reason, is_other_kind: false }
    }

    /// Whether the file is of another kind or version.
    pub fn is_other_kind(&self) -> bool {
        self.is_other_kind
    }
}

impl ConfigFile {
    /// Declares a kind of file; `root` builds its type with [`ConfigTypes::root`].
    pub fn new(kind: ConfigKind, root: impl FnOnce(&mut ConfigTypes) -> NodeId) -> ConfigFile {
        let mut types = ConfigTypes(SchemaBuilder::new());
        let root = root(&mut types);
        ConfigFile { kind, schema: types.0.finish(root), scheme: None, needs: Declared::KindAndVersion }
    }

    /// Gives errors about kind and version the exact texts of Kubernetes, which name a scheme and repeat the file: for
    /// kinds without secrets only.
    pub fn of_scheme(self, scheme: &'static str) -> ConfigFile {
        ConfigFile { scheme: Some(scheme), ..self }
    }

    /// The file may leave out its kind: Kubernetes decodes it into an object of the kind.
    pub fn of_known_kind(self) -> ConfigFile {
        ConfigFile { needs: Declared::Version, ..self }
    }

    /// As [`ConfigFile::of_known_kind`]; the file may leave out its version, too, and has the fields of the internal version
    /// then, which are the same.
    pub fn of_known_version(self) -> ConfigFile {
        ConfigFile { needs: Declared::Nothing, ..self }
    }

    /// Decodes a file. Unknown and duplicate fields are errors.
    ///
    /// # Errors
    /// When the text is neither YAML nor JSON, is of another kind or version, or has a value of a wrong type or a field
    /// that is unknown or occurs twice.
    pub fn decode_strict(&self, text: &[u8]) -> Result<Value, ConfigFileError> {
        let Decoded { value, problems, .. } = self.decode(text)?;
        check_strict(problems).map_err(ConfigFileError::new)?;
        Ok(value)
    }

    /// As [`ConfigFile::decode_strict`], of this kind or of `other`, whose errors a file of neither kind has.
    ///
    /// # Errors
    /// As [`ConfigFile::decode_strict`].
    pub fn decode_strict_or(&self, other: &ConfigFile, text: &[u8]) -> Result<Value, ConfigFileError> {
        match self.decode_strict(text) {
            Err(error) if error.is_other_kind() => other.decode_strict(text),
            decoded => decoded,
        }
    }

    /// Decodes a file. Unknown and duplicate fields are left to the caller.
    ///
    /// # Errors
    /// When the text is neither YAML nor JSON, is of another kind or version, or has a value of a wrong type.
    pub fn decode(&self, text: &[u8]) -> Result<Decoded, ConfigFileError> {
        let failed = |error: &dyn ToString| ConfigFileError::new(error.to_string());
        let (json, mut problems) = as_json(text).map_err(|error| failed(&error))?;
        // For another kind of file, the reference prints the whole file; this does not if there may be secrets in it.
        let shown = self.scheme.map(|scheme| Shown { scheme, text });
        let is_other_kind = |reason| ConfigFileError { reason, is_other_kind: true };
        self.kind.check(&json, self.needs, shown).map_err(is_other_kind)?;
        let decoded = json::decode(&json, self.schema.root()).map_err(|error| failed(&error))?;
        check_fields(&decoded.value, self.schema.root(), "").map_err(ConfigFileError::new)?;
        problems.extend(decoded.problems);
        Ok(Decoded { problems, ..decoded })
    }
}

/// The JSON of a text in YAML or JSON, and the keys that occur twice in YAML.
///
/// # Errors
/// When the text is not YAML.
pub fn as_json(text: &[u8]) -> Result<(Zeroizing<Vec<u8>>, Vec<StrictProblem>), DecodeError> {
    if is_json(text) {
        return Ok((Zeroizing::new(text.to_owned()), Vec::new()));
    }
    let converted = yaml::to_json(text)?;
    Ok((Zeroizing::new(converted.json), converted.problems))
}

/// The kind and version of an object in JSON. Errors repeat the text `shown` that it was made of.
///
/// # Errors
/// When it is not JSON, or has no kind or no version.
pub fn type_meta(json: &[u8], shown: Option<&[u8]>) -> Result<json::TypeMeta, String> {
    complete(read_type_meta(json)?, shown)
}

/// Requires that an object has kind and version.
fn complete(meta: json::TypeMeta, shown: Option<&[u8]>) -> Result<json::TypeMeta, String> {
    let missing = |field: &str| match shown {
        Some(shown) => format!("Object '{field}' is missing in '{}'", String::from_utf8_lossy(shown)),
        None => format!("Object '{field}' is missing"),
    };
    if meta.kind.is_empty() {
        return Err(missing("Kind"));
    }
    if meta.api_version.is_empty() {
        return Err(missing("apiVersion"));
    }
    Ok(meta)
}

/// As [`type_meta`], which may be incomplete.
fn read_type_meta(json: &[u8]) -> Result<json::TypeMeta, String> {
    json::type_meta(json).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
}

/// Requires that there are no unknown and no duplicate fields.
///
/// # Errors
/// When there are.
pub fn check_strict(problems: impl IntoIterator<Item = StrictProblem>) -> Result<(), String> {
    let texts: Vec<_> = problems.into_iter().map(|problem| problem.to_string()).collect();
    match texts.is_empty() {
        true => Ok(()),
        false => Err(format!("strict decoding error: {}", texts.join(", "))),
    }
}

/// Whether a file is JSON: Kubernetes goes by its first character.
fn is_json(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

/// The parts of error messages about kind and version that Kubernetes adds.
struct Shown<'a> {
    scheme: &'static str,
    /// The file.
    text: &'a [u8],
}

impl ConfigKind {
    /// Checks kind and version of a file that was converted to JSON.
    fn check(&self, json: &[u8], needs: Declared, shown: Option<Shown<'_>>) -> Result<(), String> {
        let mut meta = read_type_meta(json)?;
        if meta.kind.is_empty() && needs != Declared::KindAndVersion {
            self.kind.clone_into(&mut meta.kind);
        }
        if meta.api_version.is_empty() && needs == Declared::Nothing && meta.kind == self.kind {
            return Ok(());
        }
        let meta = complete(meta, shown.as_ref().map(|shown| shown.text))?;
        let (group, version) = meta.api_version.split_once('/').unwrap_or_default();
        if group == self.group && self.versions.contains(&version) && meta.kind == self.kind {
            return Ok(());
        }
        if let Some(Shown { scheme, .. }) = shown {
            return Err(scheme::not_registered(&meta.kind, &meta.api_version, scheme));
        }
        let wanted = format!("{} of {}/{}", self.kind, self.group, self.versions.first().unwrap_or(&"v1"));
        Err(format!("{}; {wanted} is wanted", scheme::unknown_kind(&meta.kind, &meta.api_version)))
    }
}

/// Checks the types of fields: decoding by a schema that is not built in keeps values of other types. Read as absent,
/// such a value could leave out a restriction.
fn check_fields(tree: &Value, ty: SchemaRef<'_>, path: &str) -> Result<(), String> {
    for field in ty.fields() {
        let Some(value) = tree.get(field.name()).filter(|value| !value.is_null()) else { continue };
        let path = if path.is_empty() { field.name().to_owned() } else { format!("{path}.{}", field.name()) };
        let ty = field.ty();
        if !has_type(value, ty) {
            return Err(format!("{path}: cannot read {} as {}", go_json_type(value), type_name(ty)));
        }
        match ty.ty() {
            Type::Struct => check_fields(value, ty, &path)?,
            Type::List => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check_fields(item, ty.item(), &format!("{path}[{index}]"))?;
                }
            }
            Type::Duration => {
                parse_duration(value.as_str().unwrap_or_default())
                    .map_err(|error| format!("{path}: {error}"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_type(value: &Value, ty: SchemaRef<'_>) -> bool {
    match ty.ty() {
        Type::String | Type::Duration => value.is_string(),
        Type::Bool => value.is_boolean(),
        Type::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Type::Int64 => value.as_i64().is_some(),
        Type::Struct => value.is_object(),
        Type::List => value
            .as_array()
            .is_some_and(|items| items.iter().all(|item| item.is_null() || has_type(item, ty.item()))),
        // The other types that `ConfigTypes` has accept any value.
        _ => true,
    }
}

fn type_name(ty: SchemaRef<'_>) -> String {
    match ty.ty() {
        Type::String | Type::Duration => "string".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Struct => "object".to_owned(),
        Type::List => format!("list of {}s", type_name(ty.item())),
        _ => "value".to_owned(),
    }
}

/// A field of a configuration: its name and its type.
pub type ConfigField = (&'static str, NodeId);

/// Builds the types of a configuration file.
pub struct ConfigTypes(SchemaBuilder);

impl ConfigTypes {
    /// A string.
    pub fn text(&mut self) -> NodeId {
        self.0.scalar(Type::String)
    }

    /// A boolean.
    pub fn boolean(&mut self) -> NodeId {
        self.0.scalar(Type::Bool)
    }

    /// A 32-bit integer.
    pub fn integer(&mut self) -> NodeId {
        self.0.scalar(Type::Int32)
    }

    /// A 64-bit integer.
    pub fn long_integer(&mut self) -> NodeId {
        self.0.scalar(Type::Int64)
    }

    /// A duration in Go's form, such as `1m30s`.
    pub fn duration(&mut self) -> NodeId {
        self.0.scalar(Type::Duration)
    }

    /// Any value, with any fields.
    pub fn anything(&mut self) -> NodeId {
        let node = self.0.scalar(Type::Any);
        self.0.set_structural(node, Structural { preserve_unknown_fields: true, ..Structural::default() });
        node
    }

    /// The metadata of an object.
    pub fn object_meta(&mut self) -> NodeId {
        match Schema::builtin().by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta") {
            Some(metadata) => self.0.builtin(metadata),
            None => self.anything(),
        }
    }

    /// A list.
    pub fn list(&mut self, item: NodeId) -> NodeId {
        self.0.list(item, ListType::Atomic, &[])
    }

    /// A list of strings.
    pub fn texts(&mut self) -> NodeId {
        let item = self.text();
        self.list(item)
    }

    /// A struct type. The fields in `pointers` are pointers in Go: their zero value differs from an absent one.
    pub fn structure(&mut self, values: &[ConfigField], pointers: &[ConfigField]) -> NodeId {
        let id = self.0.reserve();
        let field = |pointer: bool| {
            move |&(name, node): &ConfigField| {
                let omit = if pointer { Omit::Empty } else { Omit::Never };
                (FieldSpec { name, pointer, omit, ..FieldSpec::default() }, node)
            }
        };
        let fields = values.iter().map(field(false)).chain(pointers.iter().map(field(true))).collect();
        self.0.set_struct(id, StructSpec { fields, declared: true, ..StructSpec::default() });
        id
    }

    /// The type of a file: these fields, `kind` and `apiVersion`.
    pub fn root(&mut self, values: &[ConfigField], pointers: &[ConfigField]) -> NodeId {
        let text = self.text();
        let values = [&[("kind", text), ("apiVersion", text)], values].concat();
        self.structure(&values, pointers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    fn file() -> ConfigFile {
        let kind = ConfigKind { kind: "Policy", group: "audit.k8s.io", versions: &["v1", "v1beta1"] };
        ConfigFile::new(kind, |types| {
            let (text, texts, number) = (types.text(), types.texts(), types.integer());
            let duration = types.duration();
            let anything = types.anything();
            let rule = types.structure(&[("name", text), ("users", texts), ("timeout", duration)], &[]);
            let (rules, boolean) = (types.list(rule), types.boolean());
            types.root(&[("metadata", anything), ("rules", rules), ("size", number)], &[("strict", boolean)])
        })
    }

    #[test]
    fn kind_and_version_are_checked_first() {
        let check = |text: &str, expected: &str| {
            assert_eq!(file().decode(text.as_bytes()).unwrap_err().to_string(), expected, "{text}");
        };
        check(
            "kind: Pod\napiVersion: v1\ndata: secret",
            "no kind \"Pod\" is registered for version \"v1\"; Policy of audit.k8s.io/v1 is wanted",
        );
        check("apiVersion: v1", "Object 'Kind' is missing");
        check("", "Object 'Kind' is missing");
        check("kind: Policy", "Object 'apiVersion' is missing");
        let shown =
            |text: &str| file().of_scheme("pkg/x.go:1").decode(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            shown("kind: Pod\napiVersion: v1"),
            "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/x.go:1\""
        );
        assert_eq!(shown("a: b"), "Object 'Kind' is missing in 'a: b'");
        assert_eq!(
            shown("{\"kind\": \"Policy\""),
            "couldn't get version/kind; json parse error: unexpected end of JSON input"
        );
        assert_eq!(
            shown("{\"kind\": \"Policy\", \"apiVersion\": \"audit.k8s.io/v1\"}x"),
            "couldn't get version/kind; json parse error: invalid character 'x' after top-level value"
        );
        // Its first character makes it JSON.
        check(
            " {kind: Policy}",
            "couldn't get version/kind; json parse error: invalid character 'k' looking for beginning of object key string",
        );
        let error = file().decode(b"[]").unwrap_err().to_string();
        assert!(error.starts_with("couldn't get version/kind; json parse error: "), "{error}");
    }

    #[test]
    fn a_file_for_one_kind_may_leave_out_what_it_declares() {
        let check = |file: ConfigFile, text: &str, expected: Result<(), &str>| {
            let found = file.decode(text.as_bytes()).map(drop).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        };
        let (kind, version) = (|| file().of_known_kind(), || file().of_known_version());
        let other =
            "no kind \"Policy\" is registered for version \"v1\"; Policy of audit.k8s.io/v1 is wanted";
        check(kind(), "apiVersion: audit.k8s.io/v1", Ok(()));
        check(kind(), "apiVersion: v1", Err(other));
        check(kind(), "size: 1", Err("Object 'apiVersion' is missing"));
        check(version(), "apiVersion: audit.k8s.io/v1", Ok(()));
        check(version(), "apiVersion: v1", Err(other));
        check(version(), "kind: Policy", Ok(()));
        check(version(), "kind: Other", Err("Object 'apiVersion' is missing"));
        check(version(), "", Ok(()));
        check(version(), "size: x", Err("size: cannot read string as int32"));
    }

    #[test]
    fn unknown_and_duplicate_fields_are_problems() {
        let text = "kind: Policy\napiVersion: audit.k8s.io/v1beta1\nmetadata: {a: {b: 1}}\nrules:\n- {name: a, nam: b}\nstrict: \
                    true\nstrict: false\n";
        let decoded = file().decode(text.as_bytes()).unwrap();
        assert_eq!(
            decoded.value,
            json!({
                "kind": "Policy", "apiVersion": "audit.k8s.io/v1beta1", "metadata": {"a": {"b": 1}},
                "rules": [{"name": "a"}], "strict": false,
            })
        );
        let error = file().decode_strict(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error,
            "strict decoding error: yaml: unmarshal errors:\n  line 7: key \"strict\" already set in map, unknown field \
             \"rules[0].nam\""
        );
        let json = br#"{"kind": "Policy", "apiVersion": "audit.k8s.io/v1"}"#;
        assert_eq!(
            file().decode_strict(json).unwrap(),
            json!({"kind": "Policy", "apiVersion": "audit.k8s.io/v1"})
        );
    }

    #[test]
    fn values_of_wrong_types_are_refused() {
        let check = |fields: &str, expected: Result<(), &str>| {
            let text = format!("kind: Policy\napiVersion: audit.k8s.io/v1\n{fields}");
            let found = file().decode(text.as_bytes()).map(drop).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{fields}");
        };
        check("rules: null\nsize: 3\nstrict: false\nmetadata: 1", Ok(()));
        check("rules: [null, {name: x, users: [null]}]", Ok(()));
        check("rules: x", Err("rules: cannot read string as list of objects"));
        check("rules: [x]", Err("rules: cannot read array as list of objects"));
        check("rules: [{}, {users: jane}]", Err("rules[1].users: cannot read string as list of strings"));
        check("rules: [{users: [1]}]", Err("rules[0].users: cannot read array as list of strings"));
        check("rules: [{name: 1}]", Err("rules[0].name: cannot read number as string"));
        check("rules: [{timeout: 5}]", Err("rules[0].timeout: cannot read number as string"));
        check(
            "rules: [{timeout: 5 s}]",
            Err("rules[0].timeout: time: unknown unit \" s\" in duration \"5 s\""),
        );
        check("strict: 'true'", Err("strict: cannot read string as bool"));
        check("size: 1.5", Err("size: cannot read number as int32"));
        check("size: 3000000000", Err("size: cannot read number as int32"));
    }
}
