//! The configuration of a server under test, from the scenario's table.

use std::net::SocketAddr;
use std::path::Path;

use toml::{Table, Value};

use crate::nodes;
use crate::spec::merge::lay_over;

/// Keys of a scenario's tenant that are the load's business and not the server's.
const OF_THE_LOAD: [&str; 4] = ["name", "count", "tag", "load"];

/// Takes any free port; the ready line says which.
pub const ANY_PORT: &str = "127.0.0.1:0";

/// The tenants of a scenario, those with a `count` as many as they are: name, group, and the
/// settings that the server knows.
pub fn tenants(scenario: &Table) -> Vec<(String, String, Table)> {
    let mut found = Vec::new();
    let list = scenario.get("tenant").and_then(Value::as_array);
    for tenant in list.into_iter().flatten().filter_map(Value::as_table) {
        let group = tenant.get("name").and_then(Value::as_str).unwrap_or("");
        let count = tenant.get("count").and_then(Value::as_integer).unwrap_or(1);
        let mut settings = tenant.clone();
        OF_THE_LOAD.iter().for_each(|key| {
            settings.remove(*key);
        });
        for number in 1..=count.max(1) {
            let name = if count > 1 {
                format!("{group}-{number}")
            } else {
                group.to_string()
            };
            found.push((name, group.to_string(), settings.clone()));
        }
    }
    found
}

/// The whole configuration: what the scenario says under `server` in the language of
/// `entremet.toml`, its tenants, and what only this run knows.
pub fn of_scenario(scenario: &Table) -> Table {
    let server = scenario.get("server").and_then(Value::as_table);
    let mut config = server.cloned().unwrap_or_default();
    let named = tenants(scenario).into_iter().map(|(name, _, settings)| {
        let mut tenant = Table::from_iter([("name".to_string(), Value::String(name))]);
        lay_over(&mut tenant, &settings);
        Value::Table(tenant)
    });
    config.insert("tenant".into(), Value::Array(named.collect()));
    if nodes::is(scenario) {
        before_nodes(&mut config);
    }
    config
}

/// That of a front. Before which node it stands it is told when there are nodes.
fn before_nodes(config: &mut Table) {
    let text = format!(
        "engine = {{ kind = 'redis-cluster', url = 'redis-cluster://127.0.0.1:1' }}\n\
         server.cluster.listen = '{ANY_PORT}'"
    );
    let mut front: Table = text.parse().unwrap_or_default();
    lay_over(&mut front, config);
    *config = front;
}

/// Adds where to listen, where to keep data, and a data path thread for each core. Where nothing is
/// said of a device there is no stage before it: a server that measures its disk in the first
/// seconds would disturb what is measured of it. Before an engine there is none to schedule.
pub fn place(config: &Table, listen: &str, admin: &str, cores: usize, data: &Path) -> Table {
    let mut placed = config.clone();
    let mut set = |section: &str, key: &str, value: Value| {
        let section = placed
            .entry(section)
            .or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(section) = section {
            section.insert(key.into(), value);
        }
    };
    set("server", "listen", Value::String(listen.into()));
    set("server", "admin", Value::String(admin.into()));
    set("server", "cores", Value::Integer(cores as i64));
    set("engine", "path", Value::String(data.display().to_string()));
    let stands_before = |engine: &Value| engine.get("kind").is_some();
    if !config.contains_key("device") && !config.get("engine").is_some_and(stands_before) {
        set("device", "stage", Value::Boolean(false));
    }
    placed
}

/// The address in the line that a server prints when it is ready.
pub fn ready_address(log: &str) -> Option<SocketAddr> {
    let rest = log
        .lines()
        .find_map(|line| Some(line.split_once(" is ready: clients on ")?.1))?;
    let end = rest.find([' ', ',']).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The addresses of all fronts for clients that know of no cluster, of the line that says that a
/// cluster is ready.
pub fn front_addresses(log: &str) -> Vec<SocketAddr> {
    let ready = log.lines().find(|line| line.contains("; engines at "));
    let fronts = ready
        .iter()
        .flat_map(|line| line.split("clients on ").skip(1));
    let address = |rest: &str| rest[..rest.find([' ', ','])?].parse().ok();
    fronts.filter_map(address).collect()
}

/// The address for those that know of a cluster, in the line of the first front.
pub fn aware_address(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once(", clients of the cluster at ")?;
    rest[..rest.find(',')?].parse().ok()
}

/// Where its engines are, of the line that says that a cluster is ready; without one, none.
pub fn engines(log: &str) -> Vec<String> {
    let ready = log
        .lines()
        .find_map(|line| line.split_once("; engines at "));
    let listed = ready.map(|(_, listed)| listed.split(", ").map(str::to_owned));
    listed.into_iter().flatten().collect()
}

/// The admin address of the same line.
pub fn admin_address(log: &str) -> Option<SocketAddr> {
    let ready = log
        .lines()
        .find(|line| line.starts_with("entremet is ready: "))?;
    let (_, rest) = ready.split_once("admin on http://")?;
    let end = rest.find(['/', ' ', ',']).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().expect("toml")
    }

    #[test]
    fn the_server_gets_its_settings_and_every_tenant() {
        let scenario = table(
            "duration = \"1s\"\nserver.scheduler.request = \"fifo\"\n\
             [[tenant]]\nname = \"web\"\ncount = 2\nweight = 4\nlimit.requests = \"10/s\"\nload = [{}]\n\
             [[tenant]]\nname = \"bulk\"\ntag = \"x\"\nload = []\n",
        );
        let want = table(
            "scheduler.request = \"fifo\"\n\
             [[tenant]]\nname = \"web-1\"\nweight = 4\nlimit.requests = \"10/s\"\n\
             [[tenant]]\nname = \"web-2\"\nweight = 4\nlimit.requests = \"10/s\"\n\
             [[tenant]]\nname = \"bulk\"\n",
        );
        assert_eq!(of_scenario(&scenario), want);
    }

    #[test]
    fn a_run_has_its_own_place() {
        let config = table("server.drain = \"1s\"\nserver.cores = 7");
        let placed = place(&config, ANY_PORT, ANY_PORT, 2, Path::new("d"));
        let want = table(
            "engine.path = \"d\"\ndevice.stage = false\n[server]\ndrain = \"1s\"\ncores = 2\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"",
        );
        assert_eq!(placed, want);
    }

    #[test]
    fn the_ready_line_says_where() {
        let log = "a warning\nentremet is ready: clients on 127.0.0.1:4001 and [::1]:2, admin on http://127.0.0.1:9\n";
        assert_eq!(ready_address(log), "127.0.0.1:4001".parse().ok());
        let one = "entremet is ready: clients on 127.0.0.1:4002, admin on http://127.0.0.1:9\n";
        assert_eq!(ready_address(one), "127.0.0.1:4002".parse().ok());
        assert_eq!(ready_address("entremet is ready"), None);
        let cluster = "entremet cluster is ready: clients on 127.0.0.1:1, clients of the cluster at \
            127.0.0.1:2, admin on http://127.0.0.1:3; clients on 127.0.0.1:4, clients of the cluster \
            at 127.0.0.1:5, admin on http://127.0.0.1:6; engines at 127.0.0.1:7, 127.0.0.1:8\n";
        let fronts = [1, 4].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(front_addresses(cluster), fronts);
        assert_eq!(aware_address(cluster), "127.0.0.1:2".parse().ok());
        assert!(front_addresses(one).is_empty());
        assert_eq!(admin_address(one), "127.0.0.1:9".parse().ok());
        assert_eq!(
            admin_address("entremet is ready: clients on 127.0.0.1:1"),
            None
        );
    }
}
