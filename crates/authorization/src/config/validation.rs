//! Validates a configuration and reports all errors at once.

use super::types::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, AuthorizerType, FailurePolicy,
    WebhookConfiguration,
};
use crate::{match_conditions::MatchConditions, review::ReviewVersion};
use pintle_go_forms::{FileError, format_duration, parse_duration};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::is_dns1123_subdomain};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(300);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

/// The typed configuration, if it is valid.
pub(super) fn validate(tree: &Value) -> Result<AuthorizationConfiguration, ErrorList> {
    let mut validator = Validator { errors: Vec::new() };
    let authorizers = validator.authorizers(tree);
    match validator.errors.is_empty() {
        true => Ok(AuthorizationConfiguration { authorizers }),
        false => Err(validator.errors),
    }
}

struct Validator {
    errors: ErrorList,
}

impl Validator {
    fn authorizers(&mut self, tree: &Value) -> Vec<AuthorizerConfiguration> {
        let root = FieldPath::new("authorizers");
        let authorizers = tree.items_at("authorizers");
        if authorizers.is_empty() {
            self.required(&root, "at least one authorization mode must be defined");
        }
        let (mut types, mut names) = (HashSet::new(), HashSet::new());
        let authorizers = authorizers.iter().enumerate().filter_map(|(position, authorizer)| {
            self.authorizer(authorizer, &root.index(position), &mut types, &mut names)
        });
        authorizers.collect()
    }

    fn authorizer<'a>(
        &mut self,
        authorizer: &'a Value,
        path: &FieldPath,
        types: &mut HashSet<AuthorizerType>,
        names: &mut HashSet<&'a str>,
    ) -> Option<AuthorizerConfiguration> {
        let type_path = path.child("type");
        let type_name = authorizer.str_at("type");
        if type_name.is_empty() {
            self.required(&type_path, "");
            return None;
        }
        let Some(authorizer_type) = AuthorizerType::of(type_name) else {
            let known = AuthorizerType::ALL.map(AuthorizerType::as_str);
            self.errors.push(FieldError::not_supported(&type_path, type_name, &known).of_plain_text());
            return None;
        };
        if !types.insert(authorizer_type) && authorizer_type != AuthorizerType::Webhook {
            self.errors.push(FieldError::duplicate(&type_path, type_name));
            return None;
        }
        let name_path = path.child("name");
        let name = authorizer.str_at("name");
        if name.is_empty() {
            self.required(&name_path, "");
        } else if names.contains(name) {
            self.errors.push(FieldError::duplicate(&name_path, name));
        } else {
            let wrong = is_dns1123_subdomain(name);
            if !wrong.is_empty() {
                let detail = format!("authorizer name is invalid: {}", wrong.join(", "));
                self.errors.push(FieldError::invalid(&name_path, name, detail));
            }
        }
        names.insert(name);
        let webhook = authorizer.field("webhook").filter(|webhook| !webhook.is_null());
        let kind = match (authorizer_type, webhook) {
            (AuthorizerType::Webhook, None) => {
                self.required(&path.child("webhook"), "required when type=Webhook");
                return None;
            }
            (AuthorizerType::Webhook, Some(webhook)) => {
                AuthorizerKind::Webhook(Box::new(self.webhook(webhook, path)?))
            }
            (_, Some(_)) => {
                let detail = "may only be specified when type=Webhook";
                self.errors.push(FieldError::invalid(&path.child("webhook"), "non-null", detail));
                return None;
            }
            (authorizer_type, None) => AuthorizerKind::BuiltIn(authorizer_type),
        };
        Some(AuthorizerConfiguration { name: name.to_owned(), kind })
    }

    /// Validates a webhook. Kube-apiserver reports its fields with the path of the authorizer.
    fn webhook(&mut self, webhook: &Value, path: &FieldPath) -> Option<WebhookConfiguration> {
        let timeout = match nanoseconds(webhook, "timeout") {
            0 => {
                self.required(&path.child("timeout"), "");
                None
            }
            nanos => match duration(nanos).filter(|timeout| *timeout <= MAX_TIMEOUT) {
                None => {
                    self.invalid(path, "timeout", format_duration(nanos), "must be > 0s and <= 30s");
                    None
                }
                timeout => timeout,
            },
        };
        let authorized_ttl = self.ttl(webhook, path, "authorizedTTL", AUTHORIZED_TTL);
        let unauthorized_ttl = self.ttl(webhook, path, "unauthorizedTTL", UNAUTHORIZED_TTL);
        let version = self.choice(webhook, path, "subjectAccessReviewVersion", &["v1", "v1beta1"], "");
        let condition_version = "matchConditionSubjectAccessReviewVersion";
        let has_conditions = !webhook.items_at("matchConditions").is_empty();
        if has_conditions || !webhook.str_at(condition_version).is_empty() {
            self.choice(
                webhook,
                path,
                condition_version,
                &["v1"],
                "required if match conditions are specified",
            );
        }
        let failure_policy = self.choice(webhook, path, "failurePolicy", &["NoOpinion", "Deny"], "");
        let kube_config_file = self.connection(webhook, &path.child("connectionInfo"));
        let expressions = webhook.items_at("matchConditions").iter().map(|item| item.str_at("expression"));
        let conditions = MatchConditions::compile(expressions, &path.child("matchConditions"));
        let match_conditions = conditions.map_err(|errors| self.errors.extend(errors)).ok();
        let is_cached = |field: &str| !matches!(webhook.field(field), Some(Value::Bool(false)));
        Some(WebhookConfiguration {
            kube_config_file: kube_config_file?,
            timeout: timeout?,
            subject_access_review_version: ReviewVersion::of(version?)?,
            authorized_ttl: authorized_ttl
                .filter(|_| is_cached("cacheAuthorizedRequests"))
                .unwrap_or_default(),
            unauthorized_ttl: unauthorized_ttl
                .filter(|_| is_cached("cacheUnauthorizedRequests"))
                .unwrap_or_default(),
            failure_policy: match failure_policy? {
                "Deny" => FailurePolicy::Deny,
                _ => FailurePolicy::NoOpinion,
            },
            match_conditions: match_conditions?,
        })
    }

    fn ttl(&mut self, webhook: &Value, path: &FieldPath, field: &str, default: Duration) -> Option<Duration> {
        match nanoseconds(webhook, field) {
            0 => Some(default),
            nanos => {
                let ttl = duration(nanos);
                if ttl.is_none() {
                    self.invalid(path, field, format_duration(nanos), "must be > 0s");
                }
                ttl
            }
        }
    }

    /// A field that must have one of these values.
    fn choice<'a>(
        &mut self,
        webhook: &'a Value,
        path: &FieldPath,
        field: &str,
        choices: &[&str],
        why: &str,
    ) -> Option<&'a str> {
        match webhook.str_at(field) {
            "" => {
                self.required(&path.child(field), why);
                None
            }
            value if choices.contains(&value) => Some(value),
            value => {
                self.errors
                    .push(FieldError::not_supported(&path.child(field), value, choices).of_plain_text());
                None
            }
        }
    }

    fn connection(&mut self, webhook: &Value, path: &FieldPath) -> Option<PathBuf> {
        const KINDS: [&str; 2] = ["InClusterConfig", "KubeConfigFile"];
        let file = webhook.str_at("connectionInfo.kubeConfigFile");
        let kind = match webhook.at("connectionInfo") {
            Some(connection) => self.choice(connection, path, "type", &KINDS, ""),
            None => {
                self.required(&path.child("type"), "");
                None
            }
        };
        match kind? {
            "InClusterConfig" => {
                self.invalid(
                    path,
                    "type",
                    "InClusterConfig".to_owned(),
                    "an API server has no cluster that it is in",
                );
                None
            }
            _ if file.is_empty() => {
                self.required(&path.child("kubeConfigFile"), "");
                None
            }
            _ => {
                let wrong = wrong_file(Path::new(file));
                if let Some(wrong) = &wrong {
                    self.invalid(path, "kubeConfigFile", file.to_owned(), wrong);
                }
                wrong.is_none().then(|| file.into())
            }
        }
    }

    fn required(&mut self, path: &FieldPath, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &FieldPath, field: &str, value: String, detail: &str) {
        self.errors.push(FieldError::invalid(&path.child(field), value, detail));
    }
}

fn wrong_file(path: &Path) -> Option<String> {
    if !path.is_absolute() {
        return Some("must be an absolute path".to_owned());
    }
    match fs::metadata(path) {
        Err(error) => {
            let error = FileError::new("stat", path, error);
            Some(format!("error loading file: {error}"))
        }
        Ok(metadata) if !metadata.is_file() => Some("must be a regular file".to_owned()),
        Ok(_) => None,
    }
}

/// A duration field, which decoding has validated.
fn nanoseconds(webhook: &Value, field: &str) -> i64 {
    parse_duration(webhook.str_at(field)).unwrap_or_default()
}

fn duration(nanos: i64) -> Option<Duration> {
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}
