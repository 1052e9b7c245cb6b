//! The contents of the debug endpoints: waiting and executing requests
//! (<https://kubernetes.io/docs/reference/debug-cluster/flow-control/>).

use crate::{FlowControl, clock::WallClock, queue_set::Record, seat_seconds::SeatSeconds};
use pintle_go_forms::format_duration;
use std::{sync::Arc, sync::atomic::Ordering};

/// The largest number of queues for which empty ones are listed, too.
const MAX_EMPTY_QUEUES: usize = 65_536;

/// Text in columns, each as wide as its widest cell: at least eight characters, and one between columns.
struct Table(Vec<Vec<String>>);

impl Table {
    fn new<const N: usize>(head: [&str; N]) -> Table {
        Table(vec![head.map(str::to_owned).to_vec()])
    }

    fn text(mut self) -> String {
        for row in &mut self.0 {
            let last = row.len().saturating_sub(1);
            row.iter_mut().take(last).for_each(|cell| cell.push(','));
        }
        let columns = self.0.first().map_or(0, Vec::len).saturating_sub(1);
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count() + 1).max().unwrap_or_default().max(8)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.0 {
            for (at, cell) in row.iter().enumerate() {
                text.push_str(cell);
                let missing = widths.get(at).map_or(0, |width| width.saturating_sub(cell.chars().count()));
                text.extend(std::iter::repeat_n(' ', missing));
            }
            text.push('\n');
        }
        text
    }
}

impl FlowControl {
    /// One row for each priority level.
    pub fn dump_priority_levels(&self) -> String {
        let mut table = Table::new([
            "PriorityLevelName",
            "ActiveQueues",
            "IsIdle",
            "IsQuiescing",
            "WaitingRequests",
            "ExecutingRequests",
            "DispatchedRequests",
            "RejectedRequests",
            "TimedoutRequests",
            "CancelledRequests",
        ]);
        for level in self.levels() {
            let queue_set = level.queue_set.lock();
            let totals = queue_set.totals();
            table.0.push(vec![
                level.name.clone(),
                queue_set.queues_with_waiting().to_string(),
                queue_set.is_idle().to_string(),
                level.is_quiescing.load(Ordering::Relaxed).to_string(),
                queue_set.waiting().to_string(),
                queue_set.executing().to_string(),
                totals.dispatched.to_string(),
                totals.rejected.to_string(),
                // The reference counts timed-out requests among the cancelled ones, too.
                "0".to_owned(),
                totals.cancelled.to_string(),
            ]);
        }
        table.text()
    }

    /// One row for each queue.
    pub fn dump_queues(&self) -> String {
        let mut table = Table::new([
            "PriorityLevelName",
            "Index",
            "PendingRequests",
            "ExecutingRequests",
            "SeatsInUse",
            "NextDispatchR",
            "InitialSeatsSum",
            "MaxSeatsSum",
            "TotalWorkSum",
        ]);
        let empty = |level: &str, index: usize| {
            let zero = SeatSeconds::default().to_string();
            let mut row = vec![level.to_owned(), index.to_string()];
            row.extend(["0", "0", "0", &zero, "0", "0", &zero].map(str::to_owned));
            row
        };
        for level in self.levels() {
            let queue_set = level.queue_set.lock();
            let wanted = Some(queue_set.wanted_queues()).filter(|wanted| *wanted <= MAX_EMPTY_QUEUES);
            let mut next = 0;
            for queue in queue_set.dump_queues() {
                let before = next..queue.index.min(wanted.unwrap_or_default());
                table.0.extend(before.map(|index| empty(&level.name, index)));
                next = queue.index + 1;
                table.0.push(vec![
                    level.name.clone(),
                    queue.index.to_string(),
                    queue.waiting.to_string(),
                    queue.executing.to_string(),
                    queue.seats_in_use.to_string(),
                    queue.next_dispatch_r.to_string(),
                    queue.initial_seats_sum.to_string(),
                    queue.max_seats_sum.to_string(),
                    queue.total_work_sum.to_string(),
                ]);
            }
            let rest = next..wanted.unwrap_or_default();
            table.0.extend(rest.map(|index| empty(&level.name, index)));
        }
        table.text()
    }

    /// One row for each waiting or executing request, with more columns if `with_details` is set.
    pub fn dump_requests(&self, with_details: bool) -> String {
        let mut table = Table::new([
            "PriorityLevelName",
            "FlowSchemaName",
            "QueueIndex",
            "RequestIndexInQueue",
            "FlowDistingsher",
            "ArriveTime",
            "InitialSeats",
            "FinalSeats",
            "AdditionalLatency",
            "StartTime",
        ]);
        if with_details {
            let more =
                ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];
            table.0.iter_mut().for_each(|head| head.extend(more.map(str::to_owned)));
        }
        let wall = WallClock::new(self.clock().now());
        for level in self.levels() {
            let queue_set = level.queue_set.lock();
            for (place, record) in queue_set.dump_requests() {
                let mut row = vec![level.name.clone()];
                row.extend(request_row(wall, place, record));
                if with_details {
                    row.extend(request_details(record));
                }
                table.0.push(row);
            }
        }
        table.text()
    }

    fn levels(&self) -> Vec<Arc<crate::level::PriorityLevel>> {
        self.with_levels(|levels| levels.all().cloned().collect())
    }
}

fn request_row(wall: WallClock, place: Option<usize>, record: &Record) -> [String; 9] {
    let index = |index: Option<usize>| index.map_or("-1".to_owned(), |index| index.to_string());
    let schema = &record.schema.schema;
    let latency = i64::try_from(record.estimate.additional_latency.as_nanos()).unwrap_or(i64::MAX);
    // Before the request starts, the reference writes the zero value of its clock.
    let start = record.start.map_or("0001-01-01T00:00:00Z".to_owned(), |start| wall.time(start).to_string());
    [
        schema.name.clone(),
        index(record.queue),
        index(place),
        schema.flow_distinguisher(&*record.request).to_owned(),
        wall.time(record.arrival).to_string(),
        record.estimate.initial_seats.to_string(),
        record.estimate.final_seats.to_string(),
        format_duration(latency),
        start,
    ]
}

fn request_details(record: &Record) -> [String; 8] {
    let request = &record.request;
    let group_version = match (request.api_group(), request.api_version()) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    };
    [
        request.user().name.clone(),
        request.verb().to_owned(),
        request.path().to_owned(),
        request.namespace().to_owned(),
        request.name().to_owned(),
        group_version,
        request.resource().to_owned(),
        request.subresource().to_owned(),
    ]
}
