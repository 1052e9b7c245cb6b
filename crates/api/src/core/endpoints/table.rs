//! The table columns of endpoints.

use crate::printing::{NONE, age, column, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Endpoints", "The first addresses and ports behind the service."),
        Column::age(),
    ]
}

pub(super) fn cells(endpoints: &Value, now: Timestamp) -> Vec<Cell> {
    vec![name(endpoints), addresses(endpoints).into(), age(endpoints, now)]
}

/// Every address with every port of its subset; the first three, and the number of further ones.
fn addresses(endpoints: &Value) -> String {
    let subsets = endpoints.items_at("subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut shown: Vec<String> = Vec::new();
    let mut count = 0;
    for subset in subsets {
        let ips = || subset.items_at("addresses").iter().map(|address| address.str_at("ip"));
        let ports = subset.items_at("ports");
        let mut show = |text: &dyn Fn(&str) -> String| {
            count += ips().count();
            shown.extend(ips().take(3usize.saturating_sub(shown.len())).map(text).collect::<Vec<_>>());
        };
        if ports.is_empty() {
            show(&str::to_owned);
        }
        for port in ports {
            let number = port.i64_at("port").unwrap_or_default();
            show(&|ip| match ip.contains(':') {
                true => format!("[{ip}]:{number}"),
                false => format!("{ip}:{number}"),
            });
        }
    }
    let list = shown.join(",");
    if count > shown.len() { format!("{list} + {} more...", count - shown.len()) } else { list }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn three_addresses_are_shown() {
        let check = |subsets: Value, expected: &str| {
            assert_eq!(addresses(&json!({"subsets": subsets})), expected);
        };
        check(json!([]), "<none>");
        check(json!([{"addresses": [{"ip": "10.1.0.4"}]}]), "10.1.0.4");
        check(json!([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]), "[fd00::1]:80");
        let two = json!([{"ip": "10.2.0.9"}, {"ip": "10.2.0.1"}]);
        check(
            json!([
                {"addresses": two, "ports": [{"port": 90}, {"port": 10}]},
                {"addresses": [{"ip": "10.2.0.9"}], "ports": [{"port": 10}]}
            ]),
            "10.2.0.9:90,10.2.0.1:90,10.2.0.9:10 + 2 more...",
        );
        check(json!([{"notReadyAddresses": two, "ports": [{"port": 90}]}]), "");
    }
}
