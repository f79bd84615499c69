//! Laying one table over another: how a variant or a point changes the scenario.

use toml::{Table, Value};

/// The name that stands for every element of a list of named tables.
const EVERY: &str = "*";

/// Lays `over` over `base`:
///
/// * a table over a table, key by key;
/// * a table over a list of tables: over each of them;
/// * a list of named tables over a list of named tables: each over the one of its name (`"*"`: over
///   all), or appended where none has its name;
/// * anything else replaces what was there.
pub fn lay_over(base: &mut Table, over: &Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (Some(Value::Array(below)), Value::Table(above)) if all_tables(below) => {
                each(below, above);
            }
            (Some(Value::Array(below)), Value::Array(above))
                if !above.is_empty() && all_named(below) && all_named(above) =>
            {
                above.iter().for_each(|element| by_name(below, element));
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn name(value: &Value) -> Option<&str> {
    value.as_table()?.get("name")?.as_str()
}

fn all_named(list: &[Value]) -> bool {
    list.iter().all(|element| name(element).is_some())
}

fn all_tables(list: &[Value]) -> bool {
    list.iter().all(Value::is_table)
}

fn each(below: &mut [Value], above: &Table) {
    for element in below {
        if let Value::Table(element) = element {
            lay_over(element, above);
        }
    }
}

fn by_name(below: &mut Vec<Value>, above: &Value) {
    let (Some(wanted), Value::Table(table)) = (name(above), above) else {
        return;
    };
    if wanted == EVERY {
        let mut unnamed = table.clone();
        unnamed.remove("name");
        each(below, &unnamed);
        return;
    }
    let found = below
        .iter_mut()
        .find(|element| name(element) == Some(wanted));
    match found {
        Some(Value::Table(element)) => lay_over(element, table),
        _ => below.push(above.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(base: &str, over: &str) -> Table {
        let mut base: Table = base.parse().expect("base");
        lay_over(&mut base, &over.parse().expect("over"));
        base
    }

    #[test]
    fn tables_merge_and_values_replace() {
        let got = laid("a = 1\nb.c = 2\nb.d = [1, 2]", "b.c = 3\nb.d = [4]\ne = 5");
        assert_eq!(got, laid("a = 1\nb.c = 3\nb.d = [4]\ne = 5", ""));
    }

    #[test]
    fn a_table_changes_every_element_of_a_list() {
        let base = "tenant = [{ name = \"a\", load = [{ depth = 1 }, { depth = 2 }] }, { name = \"b\", load = [{}] }]";
        let want = "tenant = [{ name = \"a\", load = [{ depth = 8 }, { depth = 8 }] }, { name = \"b\", load = [{ depth = 8 }] }]";
        assert_eq!(laid(base, "tenant.load.depth = 8"), laid(want, ""));
    }

    #[test]
    fn named_elements_meet_by_name() {
        let base = "tenant = [{ name = \"a\", weight = 1 }, { name = \"b\", weight = 1 }]";
        let got = laid(
            base,
            "tenant = [{ name = \"b\", weight = 2 }, { name = \"c\" }]",
        );
        let want =
            "tenant = [{ name = \"a\", weight = 1 }, { name = \"b\", weight = 2 }, { name = \"c\" }]";
        assert_eq!(got, laid(want, ""));
        let got = laid(base, "tenant = [{ name = \"*\", weight = 3 }]");
        let want = "tenant = [{ name = \"a\", weight = 3 }, { name = \"b\", weight = 3 }]";
        assert_eq!(got, laid(want, ""));
    }

    #[test]
    fn an_empty_list_empties() {
        let got = laid(
            "tenant = [{ name = \"a\", load = [{}] }]",
            "tenant.load = []",
        );
        assert_eq!(got, laid("tenant = [{ name = \"a\", load = [] }]", ""));
    }
}
