//! What an emulated hard disk holds when a run begins. Through the disk's own pace it would take
//! minutes to store, and runs would begin in the middle of what compactions make of it. So it is
//! stored once, without the disk, and each run begins with a copy.

use std::path::PathBuf;

use toml::{Table, Value};

use super::Runner;
use crate::error::ExperimentError;
use crate::server::{config, Launch, Server};

impl Runner<'_> {
    /// The data that the loads of a scenario ask for, if its disk is an emulated hard disk; the
    /// scenario's loads then need store nothing.
    pub(super) fn stored(&self, scenario: &mut Table) -> Result<Option<PathBuf>, ExperimentError> {
        let device = scenario
            .get("server")
            .and_then(|server| server.get("device"));
        let model = device.and_then(|device| device.get("model")?.as_str());
        if model != Some("hdd") {
            return Ok(None);
        }
        let filling = filling(scenario);
        each_load(scenario, |load| {
            let keys = load.entry("keys").or_insert_with(|| Table::new().into());
            if let Value::Table(keys) = keys {
                keys.insert("preload".into(), false.into());
            }
        });
        let key = filling.to_string();
        if let Some(server) = self.filled.borrow().get(&key) {
            return Ok(Some(server.data()));
        }
        let config = config::of_scenario(&filling);
        let label = "storing what runs begin with";
        let mut server = Server::entremet(&Launch {
            label,
            binary: self.setup.binary,
            cores: &self.pinned.server,
            config: &config,
            data: None,
        })?;
        let played = (self.setup.player).play(
            &crate::way::without_server(&filling),
            server.address.into(),
            self.setup.stop,
            &mut |_| {},
        );
        self.observed(&mut server, played, label)?;
        server.settle();
        server.end();
        let data = server.data();
        self.filled.borrow_mut().insert(key, server);
        Ok(Some(data))
    }
}

/// The same keys and values, without the disk, promises or time.
fn filling(scenario: &Table) -> Table {
    let mut filling = scenario.clone();
    filling.insert("duration".into(), "10ms".into());
    filling.insert("warm_up".into(), "0s".into());
    if let Some(Value::Table(server)) = filling.get_mut("server") {
        server.retain(|section, _| section == "engine");
    }
    each_tenant(&mut filling, |tenant| {
        tenant.retain(|key, _| matches!(key, "name" | "count" | "load"));
    });
    filling
}

fn tables(value: Option<&mut Value>) -> impl Iterator<Item = &mut Table> {
    let all = match value {
        Some(Value::Array(all)) => all.as_mut_slice(),
        Some(one) => std::slice::from_mut(one),
        None => &mut [],
    };
    all.iter_mut().filter_map(Value::as_table_mut)
}

fn each_tenant(scenario: &mut Table, change: impl FnMut(&mut Table)) {
    tables(scenario.get_mut("tenant")).for_each(change);
}

fn each_load(scenario: &mut Table, mut change: impl FnMut(&mut Table)) {
    each_tenant(scenario, |tenant| {
        tables(tenant.get_mut("load")).for_each(&mut change);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_depends_on_loads_and_engine_alone() {
        let table = |text: &str| -> Table { text.parse().expect("TOML") };
        let scenario = table(
            "duration = \"1min\"\n[server.device]\nmodel = \"hdd\"\n[server.engine]\nmemtable = \"1MiB\"\n\
             [[tenant]]\nname = \"web\"\nweight = 3\nslo = [{ class = \"get\" }]\nload = [{ rate = \"1/s\" }]\n",
        );
        let want = table(
            "duration = \"10ms\"\nwarm_up = \"0s\"\n[server.engine]\nmemtable = \"1MiB\"\n\
             [[tenant]]\nname = \"web\"\nload = [{ rate = \"1/s\" }]\n",
        );
        assert_eq!(filling(&scenario), want);
        let mut kept = scenario;
        each_load(&mut kept, |load| {
            load.insert("connections".into(), 1.into());
        });
        let load = &kept["tenant"][0]["load"][0];
        assert_eq!(
            (load["connections"].as_integer(), load["rate"].as_str()),
            (Some(1), Some("1/s"))
        );
    }
}
