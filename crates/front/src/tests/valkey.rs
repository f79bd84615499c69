//! What Valkey 9.1 has beside Redis 7.0.

use telemetry::Class;

use super::sent;
use crate::{Space, Table, Value, Way};

fn table() -> Table {
    let reply = include_bytes!("valkey-9.1.2.resp");
    let reply = Value::read(reply).expect("a reply");
    Table::read(&reply, None).expect("a table")
}

#[test]
fn keys_of_its_commands_are_marked() {
    let (table, space) = (table(), Space::of("t"));
    for (request, expected) in [
        ("SET FIELDS v IFEQ FIELDS", "SET {@t}FIELDS v IFEQ FIELDS"),
        ("DELIFEQ k k", "DELIFEQ {@t}k k"),
        ("MSETEX 2 a b c d EX 1", "MSETEX 2 {@t}a b {@t}c d EX 1"),
        (
            "HSETEX h EX 1 FIELDS 1 h h",
            "HSETEX {@t}h EX 1 FIELDS 1 h h",
        ),
        ("HGETDEL h FIELDS 1 h", "HGETDEL {@t}h FIELDS 1 h"),
        (
            "GEOSEARCHSTORE d s BYPOLYGON 3 0 0 0 1 1 0",
            "GEOSEARCHSTORE {@t}d {@t}s BYPOLYGON 3 0 0 0 1 1 0",
        ),
    ] {
        assert_eq!(sent(&table, request, &space).as_deref(), Ok(expected));
    }
    // The engine would take what is behind the last key for its value.
    for request in ["MSETEX 3 a b", "MSETEX -1 a b", "MSETEX x a b"] {
        assert!(sent(&table, request, &space).is_err(), "{request}");
    }
    let parts = Space::in_parts("t", 8);
    let crosses = sent(&table, "MSETEX 4 a 1 b 2 c 3 d 4 NX", &parts);
    assert!(crosses.is_err_and(|why| why.starts_with("CROSSSLOT")));
}

#[test]
fn its_commands_are_counted_by_what_they_do() {
    let table = table();
    for (name, class) in [
        ("set", Class::Put),
        ("delifeq", Class::Put),
        ("hsetex", Class::Put),
        ("hgetex", Class::Put),
        ("hgetdel", Class::Put),
        ("hexpire", Class::Put),
        ("httl", Class::Get),
        ("hpexpiretime", Class::Get),
        ("msetex", Class::Multiget),
    ] {
        let mut all = table.all();
        let command = all.find(|command| command.spec.name == name);
        let command = command.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(
            (command.way, command.spec.class),
            (Way::Engine, class),
            "{name}"
        );
    }
}

#[test]
fn what_is_about_its_nodes_and_connections_is_refused_for_what_it_is() {
    let table = table();
    let refused = |name: &str| {
        let found = table.all().find(|command| command.spec.name == name);
        match found.map(|command| command.way) {
            Some(Way::Refused(why)) => why,
            way => panic!("{name}: {way:?}"),
        }
    };
    for (name, why) in [
        ("cluster|migrateslots", "nodes"),
        ("cluster|cancelslotmigrations", "nodes"),
        ("cluster|getslotmigrations", "nodes"),
        ("cluster|syncslots", "nodes"),
        ("cluster|flushslot", "nodes"),
        ("cluster|slot-stats", "nodes"),
        ("cluster|setslot", "nodes"),
        ("clusterscan", "SCAN"),
        ("commandlog", "SLOWLOG"),
        ("commandlog|get", "SLOWLOG"),
        ("commandlog|help", "SLOWLOG"),
        ("client|import-source", "many clients"),
        ("client|caching", "many clients"),
        ("script|show", "all tenants"),
        ("waitaof", "counts for a connection"),
    ] {
        assert!(refused(name).contains(why), "{name}: {}", refused(name));
    }
    for name in ["client|capa", "client|list", "cluster|slots"] {
        let found = table.all().find(|command| command.spec.name == name);
        assert_eq!(found.map(|command| command.way), Some(Way::Here), "{name}");
    }
}
