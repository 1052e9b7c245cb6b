//! The table columns of jobs.

use crate::printing::{
    age, column, container_cells, container_columns, label_selector, name, selector_column,
};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, meta};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        column("Status", "Whether the job runs, and how it ended."),
        column("Completions", "How many pods have succeeded, of how many."),
        column("Duration", "How long it has run."),
        Column::age(),
        containers,
        images,
        selector_column(),
    ]
}

/// The cells of one object.
pub(super) fn cells(job: &Value, now: Timestamp) -> Vec<Cell> {
    let [containers, images] = container_cells(job, "spec.template.spec.containers");
    vec![
        name(job),
        status(job).into(),
        completions(job).into(),
        duration(job, now).into(),
        age(job, now),
        containers,
        images,
        label_selector(job.at("spec.selector")).into(),
    ]
}

/// The most significant condition, as the word for the job's state.
fn status(job: &Value) -> &'static str {
    let has = |condition_type: &str| {
        let mut conditions = job.items_at("status.conditions").iter();
        conditions.any(|condition| {
            condition.str_at("type") == condition_type && condition.str_at("status") == "True"
        })
    };
    match job {
        _ if has("Complete") => "Complete",
        _ if has("Failed") => "Failed",
        _ if job.at("metadata.deletionTimestamp").is_some() => "Terminating",
        _ if has("Suspended") => "Suspended",
        _ if has("FailureTarget") => "FailureTarget",
        _ if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        _ => "Running",
    }
}

/// The completions of a job. For a job without a number of completions, which ends with the first success, the
/// parallelism is shown.
fn completions(job: &Value) -> String {
    let succeeded = job.i64_at("status.succeeded").unwrap_or_default();
    match (job.i64_at("spec.completions"), job.i64_at("spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism)) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: &Value, now: Timestamp) -> String {
    let [start, end] =
        ["status.startTime", "status.completionTime"].map(|path| meta::parse_time(job.str_at(path)));
    match start {
        Some(start) => meta::human_duration(end.unwrap_or(now).duration_since(start).as_secs()),
        None => String::new(),
    }
}
