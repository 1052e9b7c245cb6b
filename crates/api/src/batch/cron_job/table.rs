//! The table columns of cron jobs.

use crate::printing::{
    NONE, UNSET, age, booleans, column, container_cells, container_columns, count, integers, label_selector,
    name, selector_column, since, text, text_or,
};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let [containers, images] = container_columns();
    vec![
        Column::name(),
        column("Schedule", "When it runs, in cron's notation."),
        column("Timezone", "Whose clock the schedule goes by."),
        booleans("Suspend", "Whether it is held."),
        integers("Active", "How many of its jobs run."),
        column("Last Schedule", "How long ago it last ran."),
        Column::age(),
        containers,
        images,
        selector_column(),
    ]
}

/// The cells of one object.
pub(super) fn cells(cron_job: &Value, now: Timestamp) -> Vec<Cell> {
    let suspend = match cron_job.at("spec.suspend").and_then(Value::as_bool) {
        None => UNSET,
        Some(true) => "True",
        Some(false) => "False",
    };
    let last_schedule = match cron_job.at("status.lastScheduleTime") {
        Some(_) => since(cron_job, "status.lastScheduleTime", now),
        None => NONE.to_owned(),
    };
    let [containers, images] = container_cells(cron_job, "spec.jobTemplate.spec.template.spec.containers");
    vec![
        name(cron_job),
        text(cron_job, "spec.schedule"),
        text_or(cron_job, "spec.timeZone", NONE),
        suspend.into(),
        count(cron_job, "status.active"),
        last_schedule.into(),
        age(cron_job, now),
        containers,
        images,
        label_selector(cron_job.at("spec.jobTemplate.spec.selector")).into(),
    ]
}
