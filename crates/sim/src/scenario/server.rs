//! What a scenario says of a server is true of the node that stands for it: a scenario that both
//! play is written once.

use toml::{Table, Value};

/// Keys of `[server]`, by section and name, and what they are called in `[cluster]`. Their values
/// are written alike.
const SAME: [([&str; 2], &str); 7] = [
    (["device", "model"], "device"),
    (["device", "disks"], "disks"),
    (["device", "span"], "span"),
    (["engine", "handlers"], "handlers"),
    (["control", "policy"], "control"),
    (["scheduler", "request"], "scheduler"),
    (["scheduler", "device"], "device_scheduler"),
];

/// Fills in what `cluster` does not say, if the server has emulated disks.
pub(super) fn fill(own: &mut Table, server: Option<&Value>) {
    let Some(Value::Table(cluster)) = own.get_mut("cluster") else {
        return;
    };
    let said = |[section, key]: [&str; 2]| server?.get(section)?.get(key).cloned();
    if said(SAME[0].0).is_none() {
        return;
    }
    for (path, key) in SAME {
        if let Some(value) = said(path).filter(|_| !cluster.contains_key(key)) {
            cluster.insert(key.into(), value);
        }
    }
}
