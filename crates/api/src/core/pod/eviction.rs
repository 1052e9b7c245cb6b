//! `pods/eviction`: a delete that respects the pod's disruption budget
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>).
//!
//! The steps of an eviction: a pod that has ended or is pending is deleted. Otherwise its budget is read; an unready
//! pod of a healthy application is free, others are deducted from the budget. Then the pod gets the disruption
//! condition and is deleted. A deducted disruption stays deducted when the delete fails.

mod retries;

use super::{binding, conditions};
use jiff::Timestamp;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupKind, GroupResource, LabelSelector, Status, StatusReason, Value,
    ValueExt, json, meta, meta::ObjectMeta, options::delete_options_and_error,
};
use pintle_registry::{BoxFuture, DeleteOptions, NamedCreater, RequestContext, WriteOptions};
use retries::Retries;

/// Evicts the pod of the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct EvictionCreater;

impl NamedCreater for EvictionCreater {
    fn prepare<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(prepare(context, body)))
    }

    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let eviction = Eviction::new(context, &body)?;
            eviction.run().await?;
            Ok(binding::success())
        })
    }
}

/// Checks an eviction. A dry run shows in the options of its delete.
fn prepare(context: &RequestContext<'_>, eviction: &mut Value) -> Result<(), Status> {
    Eviction::new(context, eviction)?;
    if context.dry_run
        && eviction.items_at("deleteOptions.dryRun").is_empty()
        && let Some(options) = eviction.at_mut("deleteOptions")
    {
        options.set("dryRun", json!(["All"]));
    }
    Ok(())
}

/// The number of disrupted pods in a budget above which its controller is considered too slow, and evictions are
/// refused.
const MAX_DISRUPTED_PODS: usize = 2000;
const BUDGET_CAUSE: &str = "DisruptionBudget";

struct Eviction<'a> {
    context: &'a RequestContext<'a>,
    name: &'a str,
    options: DeleteOptions,
    /// The error of the options, which the deletion finds.
    refusal: Option<Status>,
    pods: GroupResource,
    budgets: GroupResource,
}

impl<'a> Eviction<'a> {
    fn new(context: &'a RequestContext<'a>, body: &'a Value) -> Result<Eviction<'a>, Status> {
        if context.name != body.name() {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        if body.bool_at("deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential") {
            let field =
                FieldPath::new("deleteOptions").child("ignoreStoreReadErrorWithClusterBreakingPotential");
            let detail = "can not be set for pod eviction, try after removing the option";
            let errors: ErrorList = vec![FieldError::invalid(&field, true, detail)];
            return Err(Status::invalid(&GroupKind::new("policy", "Eviction"), context.name, &errors));
        }
        let (options, refusal) = delete_options(context.dry_run, body)?;
        Ok(Eviction {
            context,
            name: context.name,
            options,
            refusal,
            pods: GroupResource::new("", "pods"),
            budgets: GroupResource::new("policy", "poddisruptionbudgets"),
        })
    }

    async fn run(&self) -> Result<(), Status> {
        let Some(pod) = self.delete_what_no_budget_guards().await? else { return Ok(()) };
        let mut options = self.options.clone();
        let mut budget_name = String::new();
        if let Some(budget) = self.budget(&pod).await? {
            budget_name = budget.name().to_owned();
            if costs_nothing(&pod, &budget) {
                // The pod must be unchanged since it was found unready.
                options.preconditions.resource_version = Some(pod.resource_version().to_owned());
            } else {
                self.spend(&budget_name).await?;
            }
        }
        let pinned = options.preconditions.resource_version.is_some()
            && self.options.preconditions.resource_version.is_none();
        match self.delete(&options).await {
            Err(status) if status.reason == StatusReason::Conflict && pinned => {
                Err(still_processing(&budget_name))
            }
            result => result,
        }
    }

    /// Deletes a pod that has ended or is pending. Returns any other pod.
    async fn delete_what_no_budget_guards(&self) -> Result<Option<Value>, Status> {
        let mut retries = Retries::default();
        loop {
            let pod = self.context.registry.get(&self.pods, self.context.namespace, self.name).await?;
            let phase = pod.str_at("status.phase");
            let ended = matches!(phase, "Succeeded" | "Failed") || pod.is_terminating();
            if !ended && phase != "Pending" {
                return Ok(Some(pod));
            }
            let mut options = self.options.clone();
            if !ended && options.preconditions.resource_version.is_none() {
                // A pod that starts to run meanwhile must be deducted.
                options.preconditions.resource_version = Some(pod.resource_version().to_owned());
            }
            let Err(status) = self.delete(&options).await else { return Ok(None) };
            // A later attempt cannot meet the preconditions of the request, either.
            let is_final = status.reason != StatusReason::Conflict
                || check_preconditions(&pod, &self.options).is_err()
                || self.options.preconditions.resource_version.is_some();
            if is_final || !retries.next(self.context.client).await {
                return Err(status);
            }
        }
    }

    /// The budget that selects the pod, if any.
    async fn budget(&self, pod: &Value) -> Result<Option<Value>, Status> {
        let labels = pod.at("metadata.labels");
        let guards = |budget: &Value| {
            LabelSelector::from_object(budget.at("spec.selector"))
                .is_ok_and(|selector| selector.matches_labels(labels))
        };
        let Eviction { context, budgets, .. } = self;
        let guarding = context.registry.list_matching(budgets, context.namespace, 2, &guards);
        let mut guarding = guarding.await?.into_iter();
        match (guarding.next(), guarding.next()) {
            (budget, None) => Ok(budget),
            (_, Some(_)) => Err(Status::unknown(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
        }
    }

    /// Deducts the eviction from the budget, or refuses it.
    async fn spend(&self, budget: &str) -> Result<(), Status> {
        let (pod, now) = (self.name.to_owned(), self.context.now);
        let change = move |budget: Value| spend_one(budget, &pod, now);
        let options = WriteOptions {
            dry_run: self.options.dry_run,
            field_manager: "kube-apiserver".to_owned(),
            subresource: "status",
            ..WriteOptions::default()
        };
        let (registry, namespace) = (self.context.registry, self.context.namespace);
        registry.update(&self.budgets, namespace, budget, Box::new(change), options).await?;
        Ok(())
    }

    /// Sets the disruption condition of the pod, and deletes it.
    async fn delete(&self, options: &DeleteOptions) -> Result<(), Status> {
        let mut options = options.clone();
        let (registry, namespace) = (self.context.registry, self.context.namespace);
        if !options.dry_run {
            let now = self.context.now;
            let preconditions = options.clone();
            let change = move |mut pod: Value| {
                check_preconditions(&pod, &preconditions)?;
                let condition = conditions::Condition {
                    condition_type: "DisruptionTarget",
                    status: "True",
                    reason: "EvictionByEvictionAPI",
                    message: "Eviction API: evicting",
                };
                conditions::update(&mut pod, &condition, now);
                Ok(pod)
            };
            let write = WriteOptions {
                user: Some(self.context.user.clone()),
                subresource: "status",
                ..WriteOptions::default()
            };
            let pod = registry.update(&self.pods, namespace, self.name, Box::new(change), write).await?;
            if options.preconditions.resource_version.is_some() {
                options.preconditions.resource_version = Some(pod.resource_version().to_owned());
            }
        }
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        registry.delete(&self.pods, namespace, self.name, options).await?;
        Ok(())
    }
}

/// The body's delete options, with the request's dry run, and the error that the delete finds in them.
fn delete_options(request_dry_run: bool, body: &Value) -> Result<(DeleteOptions, Option<Status>), Status> {
    let dry_run = body.items_at("deleteOptions.dryRun");
    if request_dry_run && !dry_run.is_empty() && dry_run != [json!("All")] {
        let given: Vec<&str> = dry_run.iter().filter_map(Value::as_str).collect();
        return Err(Status::unknown(format!(
            "Non-matching dry-run options in request and content: [All] and [{}]",
            given.join(" ")
        )));
    }
    let (mut options, refusal) = delete_options_and_error(body.at("deleteOptions").unwrap_or(&Value::Null));
    options.dry_run |= request_dry_run;
    Ok((options, refusal))
}

/// Whether an unready pod may be evicted for free: by the budget's policy, or because enough pods are healthy.
fn costs_nothing(pod: &Value, budget: &Value) -> bool {
    if conditions::is_true(pod, "Ready") {
        return false;
    }
    let desired = budget.i64_at("status.desiredHealthy").unwrap_or_default();
    let current = budget.i64_at("status.currentHealthy").unwrap_or_default();
    budget.str_at("spec.unhealthyPodEvictionPolicy") == "AlwaysAllow" || (current >= desired && desired > 0)
}

/// Deducts one disruption from the budget, or refuses when none is left.
fn spend_one(mut budget: Value, pod: &str, now: Timestamp) -> Result<Value, Status> {
    let number = |budget: &Value, path: &str| budget.i64_at(path).unwrap_or_default();
    if number(&budget, "status.observedGeneration") < budget.generation() {
        return Err(still_processing(budget.name()));
    }
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    let allowed = number(&budget, "status.disruptionsAllowed");
    if allowed < 0 {
        return Err(Status::forbidden(&resource, budget.name(), "pdb disruptions allowed is negative"));
    }
    if budget.map_at("status.disruptedPods").len() > MAX_DISRUPTED_PODS {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(&resource, budget.name(), why));
    }
    if allowed == 0 {
        return Err(refused(0).with_cause(BUDGET_CAUSE, why_refused(&budget), ""));
    }
    budget.set("status.disruptionsAllowed", allowed - 1);
    if allowed == 1 {
        set_disruption_condition(&mut budget, now);
    }
    budget.object_at_mut("status.disruptedPods").insert(pod.to_owned(), meta::format_time(now).into());
    Ok(budget)
}

fn refused(retry_after_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Status::too_many_requests(message, retry_after_seconds)
}

fn still_processing(budget: &str) -> Status {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    refused(10).with_cause(BUDGET_CAUSE, why, "")
}

fn why_refused(budget: &Value) -> String {
    let name = budget.name();
    let conditions = budget.items_at("status.conditions");
    let denial = conditions
        .iter()
        .find(|condition| condition.str_at("type") == "DisruptionAllowed")
        .filter(|condition| condition.str_at("status") == "False" && !condition.str_at("message").is_empty());
    let desired = budget.i64_at("status.desiredHealthy").unwrap_or_default();
    let current = budget.i64_at("status.currentHealthy").unwrap_or_default();
    match denial {
        // The numbers are invalid after a failed sync of the controller.
        Some(condition) if condition.str_at("reason") == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            condition.str_at("message")
        ),
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            condition.str_at("reason"),
            condition.str_at("message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Sets the condition of the budget when it is exhausted.
fn set_disruption_condition(budget: &mut Value, now: Timestamp) {
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": budget.i64_at("status.observedGeneration").unwrap_or_default(),
        "lastTransitionTime": meta::format_time(now),
    });
    let status = budget.object_at_mut("status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|old| old.str_at("type") == "DisruptionAllowed") {
        Some(old) => {
            if old.str_at("status") == "False"
                && let Some(time) = old.at("lastTransitionTime")
            {
                condition.set("lastTransitionTime", time.clone());
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

fn check_preconditions(pod: &Value, options: &DeleteOptions) -> Result<(), Status> {
    match options.preconditions.clone().without_empty().unmet_by(pod) {
        Some(unmet) => Err(Status::conflict(&GroupResource::new("", "Pod"), pod.name(), &unmet.of_delete())),
        None => Ok(()),
    }
}
