//! Open files: how many the system allows, and who may have how many of them.
//!
//! Connections and what keeps the data take descriptors from one number. A database that gets none
//! fails its tenant's writes, and an engine without a link serves nobody, so what they may need is
//! kept for them: with F files allowed, connections are at most as many as leave room, and no
//! connection keeps a descriptor above F - kept. The kernel gives the lowest number that is free,
//! so those above are free for databases and links whatever connections do.

use super::Tuning;

/// A database has about this many files open before it holds much data: log, manifest, lock, and a
/// few of data.
const DATABASE_MIN: u64 = 16;

/// Kept for listeners, polls, logs and the admin address.
const OWN: u64 = 128;

/// What the system allows, and what is wanted of it beside connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Open files that this process may have.
    pub files: u64,
    /// Those of what keeps the data.
    pub storage: StorageFiles,
}

/// What keeps the data, and what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFiles {
    /// A database for each tenant.
    Databases {
        /// Data files that one of them may keep open.
        data_files: u64,
    },
    /// Another server, or several.
    Engine {
        /// Connections to it, all together.
        links: u64,
    },
}

/// Who may have how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Connections of all tenants together.
    pub connections: usize,
    /// Connections of nobody yet.
    pub newcomers: usize,
    /// Connections of operators beside those.
    pub operators: usize,
    /// Data files that one tenant's database may keep open.
    pub data_files: u64,
    /// No connection keeps a descriptor from this number on.
    pub end: u64,
}

impl Descriptors {
    /// Divides them for this many tenants. Newcomers and operators get what they are to have, or a
    /// part of few; then databases, but not more than half of the rest where connections want that.
    ///
    /// # Errors
    /// There are too few for what keeps the data alone; says what to do.
    pub fn plan(&self, tenants: usize, tuning: &Tuning) -> Result<Plan, String> {
        let (databases, wanted_each, links) = match self.storage {
            StorageFiles::Databases { data_files } => (tenants as u64, data_files, 0),
            StorageFiles::Engine { links } => (0, 0, self.kept_for(links)),
        };
        let least = OWN + links + DATABASE_MIN * databases;
        let left = self.files.saturating_sub(least);
        if left < 4 {
            return Err(format!(
                "the system allows this process {} open files, and {} need {least} without any \
                 connection; raise the limit (`ulimit -n`, or LimitNOFILE in the unit)",
                self.files,
                self.whose(tenants)
            ));
        }
        let operators = (tuning.operator_connections as u64).min(left / 8).max(1);
        let newcomers = (tuning.newcomers_max as u64).min(left / 4).max(1);
        let rest = left - operators - newcomers;
        let more = (wanted_each.saturating_mul(databases)).min(rest);
        let wanted = tuning.connections_max as u64;
        let connections = (rest - more).max(rest / 2).min(wanted).max(1);
        let spare = (rest - connections) / databases.max(1);
        let data_files = wanted_each.min(DATABASE_MIN.max(spare));
        let kept = links + (DATABASE_MIN + spare.min(wanted_each)) * databases;
        Ok(Plan {
            connections: connections as usize,
            newcomers: newcomers as usize,
            operators: operators as usize,
            data_files,
            end: self.files - kept,
        })
    }

    /// What is kept for so many connections to an engine, which most of the time are a few.
    fn kept_for(&self, links: u64) -> u64 {
        links.min(self.files / 2)
    }

    fn whose(&self, tenants: usize) -> String {
        match self.storage {
            StorageFiles::Databases { .. } => format!("the databases of {tenants} tenants"),
            StorageFiles::Engine { .. } => "connections to the engine".into(),
        }
    }

    /// The most connections of tenants that can be planned.
    pub fn connections_limit(&self, tenants: usize, tuning: &Tuning) -> usize {
        let all = Tuning {
            connections_max: usize::MAX,
            ..*tuning
        };
        self.plan(tenants, &all).map_or(1, |plan| plan.connections)
    }

    /// What is less in `plan` than was asked for, in words; none: nothing.
    pub fn shortage(&self, tenants: usize, tuning: &Tuning, plan: &Plan) -> Option<String> {
        let storage = match self.storage {
            StorageFiles::Databases { data_files } => {
                ("engine.max_open_files", data_files, plan.data_files)
            }
            StorageFiles::Engine { links } => {
                ("connections to the engine", links, self.kept_for(links))
            }
        };
        let asked = [
            (
                "max_connections",
                tuning.connections_max as u64,
                plan.connections as u64,
            ),
            (
                "max_newcomers",
                tuning.newcomers_max as u64,
                plan.newcomers as u64,
            ),
            (
                "operator_connections",
                tuning.operator_connections as u64,
                plan.operators as u64,
            ),
            storage,
        ];
        let short = asked.iter().filter(|(_, wanted, planned)| planned < wanted);
        let short: Vec<String> = short
            .map(|(key, wanted, planned)| format!("{key} = {planned} instead of {wanted}"))
            .collect();
        (!short.is_empty()).then(|| {
            format!(
                "the system allows this process {} open files, which leaves room for {} beside {}: that holds; \
                 raise the limit (`ulimit -n`, or LimitNOFILE in the unit) and restart",
                self.files,
                short.join(", "),
                self.whose(tenants)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: Descriptors = Descriptors {
        files: 20_000,
        storage: StorageFiles::Databases { data_files: 256 },
    };

    #[test]
    fn where_there_are_enough_everybody_has_what_was_asked_for() {
        let tuning = Tuning::default();
        let plan = ASKED.plan(3, &tuning).expect("enough");
        assert_eq!(
            plan,
            Plan {
                connections: 10_000,
                newcomers: 1_000,
                operators: 32,
                data_files: 256,
                end: 20_000 - 3 * 272,
            }
        );
        assert_eq!(ASKED.shortage(3, &tuning, &plan), None);
    }

    #[test]
    fn where_there_are_few_all_are_held_down_and_that_is_said() {
        let few = Descriptors {
            files: 400,
            ..ASKED
        };
        let plan = few.plan(2, &Tuning::default()).expect("some");
        assert_eq!(
            (plan.connections, plan.newcomers, plan.operators),
            (75, 60, 30)
        );
        assert_eq!((plan.data_files, plan.end), (37, 400 - 2 * 53));
        let said = few
            .shortage(2, &Tuning::default(), &plan)
            .expect("it is short");
        assert!(said.contains("400 open files"), "{said}");
        assert!(
            said.contains("max_connections = 75 instead of 10000"),
            "{said}"
        );
        assert!(
            said.contains("engine.max_open_files = 37 instead of 256"),
            "{said}"
        );
        let error = Descriptors {
            files: 1_024,
            ..ASKED
        }
        .plan(100, &Tuning::default())
        .expect_err("too few");
        assert!(
            error.contains("1024 open files, and the databases of 100 tenants need 1728"),
            "{error}"
        );
    }

    #[test]
    fn tenants_of_an_engine_need_no_files_of_their_own() {
        let front = |links| Descriptors {
            storage: StorageFiles::Engine { links },
            ..ASKED
        };
        let tuning = Tuning::default();
        let plan = front(1_000).plan(10_000, &tuning).expect("enough");
        let given = (plan.connections, plan.data_files, plan.end);
        assert_eq!(given, (10_000, 0, 19_000));
        assert_eq!(front(1_000).shortage(10_000, &tuning, &plan), None);
        // Where there are few, clients and the engine have half each.
        let plan = front(19_900).plan(1, &tuning).expect("some");
        assert_eq!((plan.connections, plan.end), (8_840, 10_000));
        let said = front(19_900)
            .shortage(1, &tuning, &plan)
            .expect("it is short");
        assert!(
            said.contains("connections to the engine = 10000 instead of 19900"),
            "{said}"
        );
        let few = Descriptors {
            files: 200,
            ..front(1_000)
        };
        let error = few.plan(1, &tuning).expect_err("too few");
        assert!(
            error.contains("connections to the engine need 228"),
            "{error}"
        );
    }

    proptest! {
        /// All together never need more than there are, and everybody has some.
        #[test]
        fn what_is_planned_is_there(
            files in 0u64..300_000, wanted in 16u64..1_000, engine: bool, tenants in 0usize..5_000,
            connections_max in 1usize..20_000, newcomers_max in 1usize..5_000, operator_connections in 1usize..100,
        ) {
            let tuning = Tuning { connections_max, newcomers_max, operator_connections, ..Tuning::default() };
            let (storage, least) = match engine {
                false => (StorageFiles::Databases { data_files: wanted }, DATABASE_MIN * tenants as u64),
                true => (StorageFiles::Engine { links: wanted }, wanted.min(files / 2)),
            };
            let Ok(plan) = (Descriptors { files, storage }).plan(tenants, &tuning) else {
                return Ok(());
            };
            let connections = (plan.connections + plan.newcomers + plan.operators) as u64;
            prop_assert!(connections + OWN <= plan.end, "{plan:?}");
            prop_assert!(plan.end + least <= files, "{plan:?}");
            prop_assert!(plan.connections >= 1 && plan.newcomers >= 1 && plan.operators >= 1);
            prop_assert!(plan.connections <= connections_max && plan.data_files <= wanted);
        }
    }
}
