//! Validates a configuration, and compiles its expressions.

use super::{
    AuthenticationConfiguration, ClaimMappings, ClaimValidationRule, Issuer, JwtAuthenticator,
    PrefixedClaimOrExpression, UserValidationRule,
    expressions::{Expression, Expressions, Variable},
};
use crate::ca_bundle::CaBundle;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldPath, error_list::FieldError, json, validation::is_dns1123_subdomain,
};
use regex::Regex;
use std::{collections::HashSet, sync::LazyLock};

const MAX_ISSUERS: usize = 64;

/// Compiles the expressions of each issuer. `disallowed_issuers` are the server's own.
///
/// # Errors
/// All validation errors, by field.
pub fn validate(
    config: &AuthenticationConfiguration,
    disallowed_issuers: &[String],
) -> Result<Vec<Expressions>, ErrorList> {
    let root = FieldPath::new("jwt");
    if config.jwt.len() > MAX_ISSUERS {
        return Err(vec![FieldError::too_many(&root, config.jwt.len(), MAX_ISSUERS)]);
    }
    let (mut errors, mut compiled) = (Vec::new(), Vec::new());
    let (mut issuers, mut discovery_urls) = (HashSet::new(), HashSet::new());
    for (index, authenticator) in config.jwt.iter().enumerate() {
        let path = root.index(index);
        compiled.push(jwt_authenticator(authenticator, disallowed_issuers, &path, &mut errors));
        let issuer = &authenticator.issuer;
        if !issuers.insert(&issuer.url) {
            errors.push(FieldError::duplicate(&path.child("issuer").child("url"), issuer.url.as_str()));
        }
        if !issuer.discovery_url.is_empty() && !discovery_urls.insert(&issuer.discovery_url) {
            let path = path.child("issuer").child("discoveryURL");
            errors.push(FieldError::duplicate(&path, issuer.discovery_url.as_str()));
        }
    }
    if let Some(anonymous) = &config.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        let conditions: Vec<_> = anonymous.conditions.iter().map(|path| json!({"Path": path})).collect();
        errors.push(FieldError::invalid(
            &FieldPath::new("anonymous").child("conditions"),
            conditions,
            "enabled should be set to true when conditions are defined",
        ));
    }
    if errors.is_empty() { Ok(compiled) } else { Err(errors) }
}

fn jwt_authenticator(
    authenticator: &JwtAuthenticator,
    disallowed_issuers: &[String],
    path: &FieldPath,
    errors: &mut ErrorList,
) -> Expressions {
    issuer(&authenticator.issuer, disallowed_issuers, &path.child("issuer"), errors);
    let mut compiled = Expressions {
        claim_validation_rules: claim_validation_rules(
            &authenticator.claim_validation_rules,
            &path.child("claimValidationRules"),
            errors,
        ),
        ..Expressions::default()
    };
    claim_mappings(&authenticator.claim_mappings, &path.child("claimMappings"), &mut compiled, errors);
    compiled.user_validation_rules = user_validation_rules(
        &authenticator.user_validation_rules,
        &path.child("userValidationRules"),
        errors,
    );
    compiled
}

fn issuer(issuer: &Issuer, disallowed: &[String], path: &FieldPath, errors: &mut ErrorList) {
    match issuer.url.as_str() {
        "" => errors.push(FieldError::required(&path.child("url"), "")),
        issuer_url => url(issuer_url, disallowed, &path.child("url"), errors),
    }
    if !issuer.discovery_url.is_empty() {
        let path = path.child("discoveryURL");
        let is_same = issuer.url.trim_end_matches('/') == issuer.discovery_url.trim_end_matches('/');
        if !issuer.url.is_empty() && is_same {
            let detail = "discoveryURL must be different from URL";
            errors.push(FieldError::invalid(&path, issuer.discovery_url.as_str(), detail));
        }
        url(&issuer.discovery_url, &[], &path, errors);
    }
    audiences(issuer, path, errors);
    if !issuer.certificate_authority.is_empty()
        && let Err(error) = CaBundle::new("oidc-authenticator", &issuer.certificate_authority)
    {
        let path = path.child("certificateAuthority");
        errors.push(FieldError::invalid(&path, "<omitted>", error.to_string()));
    }
    let selector = issuer.egress_selector_type.as_str();
    let mut invalid = |detail: &str| {
        let path = path.child("egressSelectorType");
        errors.push(FieldError::invalid(&path, selector, detail).of_named_type());
    };
    if !selector.is_empty() && !enabled(Gate::StructuredAuthenticationConfigurationEgressSelector) {
        invalid(
            "egress selector is not supported when StructuredAuthenticationConfigurationEgressSelector feature gate \
             is disabled",
        );
    }
    if !matches!(selector, "" | "controlplane" | "cluster") {
        invalid("egress selector must be either controlplane or cluster");
    }
}

fn url(text: &str, disallowed: &[String], path: &FieldPath, errors: &mut ErrorList) {
    let mut invalid = |detail: String| errors.push(FieldError::invalid(path, text, detail));
    if disallowed.iter().any(|own| own == text) {
        let mut own = disallowed.to_vec();
        own.sort();
        invalid(format!("URL must not overlap with disallowed issuers: [{}]", own.join(" ")));
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if rest.chars().any(|c| c.is_control() || c == ' ') {
        return invalid(format!("parse {text:?}: net/url: invalid control character in URL"));
    }
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = rest.split('/').next().unwrap_or_default();
    if scheme != "https" {
        invalid("URL scheme must be https".to_owned());
    }
    if authority.contains('@') {
        invalid("URL must not contain a username or password".to_owned());
    }
    if !query.is_empty() {
        invalid("URL must not contain a query".to_owned());
    }
    if !fragment.is_empty() {
        invalid("URL must not contain a fragment".to_owned());
    }
    if scheme == "https"
        && rest.parse::<http::Uri>().is_err()
        && format!("https://{rest}").parse::<http::Uri>().is_err()
    {
        invalid(format!("parse {text:?}: invalid URL"));
    }
}

fn audiences(issuer: &Issuer, path: &FieldPath, errors: &mut ErrorList) {
    let list = path.child("audiences");
    if issuer.audiences.is_empty() {
        errors.push(FieldError::required(&list, format!("at least one {list} is required")));
        return;
    }
    let mut seen = HashSet::new();
    for (index, audience) in issuer.audiences.iter().enumerate() {
        let path = list.index(index);
        if audience.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if !seen.insert(audience) {
            errors.push(FieldError::duplicate(&path, audience.as_str()));
        }
    }
    let policy = issuer.audience_match_policy.as_str();
    let detail = match (issuer.audiences.len(), policy) {
        (_, "MatchAny") | (1, "") => return,
        (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
        _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.push(FieldError::invalid(&path.child("audienceMatchPolicy"), policy, detail).of_named_type());
}

fn claim_validation_rules(
    rules: &[ClaimValidationRule],
    path: &FieldPath,
    errors: &mut ErrorList,
) -> Vec<(Expression, String)> {
    let (mut claims, mut expressions) = (HashSet::new(), HashSet::new());
    let mut compiled = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => errors.push(FieldError::required(&path, "claim or expression is required")),
            (claim, "") => {
                if !rule.message.is_empty() {
                    let detail = "may not be specified when claim is set";
                    errors.push(FieldError::invalid(&path.child("message"), rule.message.as_str(), detail));
                }
                if !claims.insert(claim) {
                    errors.push(FieldError::duplicate(&path.child("claim"), claim));
                }
            }
            ("", expression) => {
                if !rule.required_value.is_empty() {
                    let detail = "may not be specified when expression is set";
                    let path = path.child("requiredValue");
                    errors.push(FieldError::invalid(&path, rule.required_value.as_str(), detail));
                }
                let path = path.child("expression");
                if !expressions.insert(expression) {
                    errors.push(FieldError::duplicate(&path, expression));
                    continue;
                }
                let expression = compile(expression, Variable::Claims, true, &path, errors);
                compiled.extend(expression.map(|expression| (expression, rule.message.clone())));
            }
            (claim, _) => {
                errors.push(FieldError::invalid(&path, claim, "claim and expression can't both be set"));
            }
        }
    }
    compiled
}

fn claim_mappings(
    mappings: &ClaimMappings,
    path: &FieldPath,
    compiled: &mut Expressions,
    errors: &mut ErrorList,
) {
    compiled.username = prefixed(&mappings.username, &path.child("username"), true, errors);
    compiled.groups = prefixed(&mappings.groups, &path.child("groups"), false, errors);
    let uid = path.child("uid");
    match (mappings.uid.claim.as_str(), mappings.uid.expression.as_str()) {
        (_, "") => {}
        ("", expression) => {
            compiled.uid = compile(expression, Variable::Claims, false, &uid.child("expression"), errors);
        }
        _ => errors.push(FieldError::invalid(&uid, "", "claim and expression can't both be set")),
    }
    let mut keys = HashSet::new();
    for (index, mapping) in mappings.extra.iter().enumerate() {
        let path = path.child("extra").index(index);
        extra_key(&mapping.key, &path.child("key"), errors);
        if !keys.insert(&mapping.key) {
            errors.push(FieldError::duplicate(&path.child("key"), mapping.key.as_str()));
            continue;
        }
        let path = path.child("valueExpression");
        if mapping.value_expression.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let expression = compile(&mapping.value_expression, Variable::Claims, false, &path, errors);
        compiled.extra.extend(expression.map(|expression| (mapping.key.clone(), expression)));
    }
    // A claim that the issuer does not verify must not be the user name: a user could claim any address.
    let uses_email = compiled.username.as_ref().is_some_and(|own| own.uses_claim("email"));
    let extra = compiled.extra.iter().map(|(_, expression)| expression);
    let rules = compiled.claim_validation_rules.iter().map(|(expression, _)| expression);
    let mut looked_at = compiled.username.iter().chain(extra).chain(rules);
    if uses_email && !looked_at.any(|expression| expression.uses_claim("email_verified")) {
        errors.push(FieldError::invalid(
            &path.child("username").child("expression"),
            mappings.username.expression.as_str(),
            "claims.email_verified must be used in claimMappings.username.expression or \
             claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
             claimMappings.username.expression",
        ));
    }
}

fn prefixed(
    mapping: &PrefixedClaimOrExpression,
    path: &FieldPath,
    is_required: bool,
    errors: &mut ErrorList,
) -> Option<Expression> {
    match (mapping.claim.as_str(), mapping.expression.as_str()) {
        ("", "") => {
            if is_required {
                errors.push(FieldError::required(path, "claim or expression is required"));
            }
            None
        }
        (_, "") => {
            if mapping.prefix.is_none() {
                errors.push(FieldError::required(
                    &path.child("prefix"),
                    "prefix is required when claim is set. It can be set to an empty string to disable prefixing",
                ));
            }
            None
        }
        ("", expression) => {
            if let Some(prefix) = &mapping.prefix {
                let detail = "may not be specified when expression is set";
                errors.push(FieldError::invalid(&path.child("prefix"), prefix.as_str(), detail));
            }
            compile(expression, Variable::Claims, false, &path.child("expression"), errors)
        }
        _ => {
            errors.push(FieldError::invalid(path, "", "claim and expression can't both be set"));
            None
        }
    }
}

fn user_validation_rules(
    rules: &[UserValidationRule],
    path: &FieldPath,
    errors: &mut ErrorList,
) -> Vec<(Expression, String)> {
    let (mut seen, mut compiled) = (HashSet::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index).child("expression");
        if rule.expression.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !seen.insert(&rule.expression) {
            errors.push(FieldError::duplicate(&path, rule.expression.as_str()));
        } else {
            let expression = compile(&rule.expression, Variable::User, true, &path, errors);
            compiled.extend(expression.map(|expression| (expression, rule.message.clone())));
        }
    }
    compiled
}

fn compile(
    text: &str,
    variable: Variable,
    is_rule: bool,
    path: &FieldPath,
    errors: &mut ErrorList,
) -> Option<Expression> {
    match Expression::compile(text, variable, is_rule) {
        Ok(expression) => Some(expression),
        Err(detail) => {
            errors.push(FieldError::invalid(path, text, detail));
            None
        }
    }
}

/// The characters of a path after the domain.
const HTTP_PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";

static HTTP_PATH_REGEX: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("^{HTTP_PATH}$")).ok());

fn extra_key(key: &str, path: &FieldPath, errors: &mut ErrorList) {
    match key.split_once('/') {
        _ if key.is_empty() => errors.push(FieldError::required(path, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            let wrong = is_dns1123_subdomain(host).into_iter();
            errors.extend(wrong.map(|error| FieldError::invalid(path, host, error)));
            if !HTTP_PATH_REGEX.as_ref().is_some_and(|regex| regex.is_match(rest)) {
                let detail = format!("Invalid path (regex used for validation is '{HTTP_PATH}')");
                errors.push(FieldError::invalid(path, rest, detail));
            }
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, key, detail));
        }
    }
    if key.to_lowercase() != key {
        errors.push(FieldError::invalid(path, key, "must be lowercase"));
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_reserved = |own: &str| domain == own || domain.ends_with(&format!(".{own}"));
    if is_reserved("kubernetes.io") || is_reserved("k8s.io") {
        let detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
        errors.push(FieldError::invalid(path, key, detail));
    }
}
