//! The settings that are lists of tables, and what each table may say: a row for each field, for
//! the file and for commands alike.

use super::held::{self, Held, Shown};
use super::promised::{Slo, SloClass, Workload};
use crate::schema::Otherwise::{Required, Unset, Value};
use crate::schema::Takeover::Reload;
use crate::schema::Takes::{Integer, Number, Patterns, Rate, Table, Text, Time};
use crate::schema::{choices, key, Key};
use crate::{Section, Takes};

/// One field of a table in a list.
pub struct Field<T: 'static> {
    /// Its key in the file: type, range, default, what it does.
    pub key: Key,
    held: fn(&T) -> &dyn Held,
    held_mut: fn(&mut T) -> &mut dyn Held,
}

macro_rules! field {
    ($key:expr, $field:ident) => {
        Field {
            key: $key,
            held: |one| &one.$field,
            held_mut: |one| &mut one.$field,
        }
    };
}

const RATE: Takes = Rate("1/h", "100M/s");
const NAME: &str = "1 to 64 characters of A-Z a-z 0-9 _ . -, the first not a point";

/// The fields of `[[tenant.workload]]`.
#[rustfmt::skip]
pub const WORKLOAD: &[Field<Workload>] = &[
    field!(key("tenant.workload.name", Text(NAME), Required, Reload, "Its name."), name),
    field!(key("tenant.workload.clients", Patterns, Unset("its name, where there are no `libraries` either"), Reload, "Connections that name themselves so (CLIENT SETNAME) belong to it: patterns with `*`, `?` and `[…]`. The first workload that matches counts."), clients),
    field!(key("tenant.workload.libraries", Patterns, Unset("none"), Reload, "Connections whose library names itself so (CLIENT SETINFO LIB-NAME) belong to it, too."), libraries),
    field!(key("tenant.workload.weight", Number(0.001, 1_000.0), Value("1"), Reload, "Its share of what the tenant gets is its weight's part of the weights of those of its workloads that want something. Connections of no workload have 1."), weight),
];

/// The fields of `[[tenant.slo]]`.
#[rustfmt::skip]
pub const SLO: &[Field<Slo>] = &[
    field!(key("tenant.slo.workload", Text(NAME), Unset("connections of no workload"), Reload, "The workload whose requests are meant."), workload),
    field!(key("tenant.slo.class", choices::<SloClass>(), Required, Reload, "The class of requests."), class),
    field!(key("tenant.slo.latency.p", Number(1.0, 99.999), Value("99.0"), Reload, "The percentile meant."), percentile),
    field!(key("tenant.slo.latency.at_most", Time("1us", "1h"), Required, Reload, "What that percentile should not exceed, from a request's arrival to its reply's last byte."), at_most_ns),
    field!(key("tenant.slo.latency.window", Time("1s", "1h"), Unset("10s"), Reload, "It should hold in every window of so long. A throughput is judged by it, too."), window_ns),
    field!(key("tenant.slo.throughput", RATE, Unset("none"), Reload, "A rate that should be served while so much is asked for."), throughput_per_s),
    field!(key("tenant.slo.contract", RATE, Unset("all it offers"), Reload, "Offered rate of the class up to which the targets hold; requests beyond it are served best effort, and judged by no target."), contract_per_s),
    field!(key("tenant.slo.importance", Integer(1, 100), Value("50"), Reload, "Who gives way when not all targets can be met; 100 last."), importance),
];

/// The tables in these tables.
#[rustfmt::skip]
const TABLES: [Key; 1] = [
    key("tenant.slo.latency", Table, Unset("none"), Reload, "A latency target."),
];

const ALL: usize = TABLES.len() + WORKLOAD.len() + SLO.len();

/// Every key of these tables.
pub(super) const KEYS: [Key; ALL] = {
    let mut keys = [TABLES[0]; ALL];
    let mut at = 0;
    while at < WORKLOAD.len() {
        keys[TABLES.len() + at] = WORKLOAD[at].key;
        at += 1;
    }
    at = 0;
    while at < SLO.len() {
        keys[TABLES.len() + WORKLOAD.len() + at] = SLO[at].key;
        at += 1;
    }
    keys
};

impl<T> Field<T> {
    /// Its name in commands, as `AT-MOST`.
    #[must_use]
    pub fn option(&self) -> String {
        self.key.name().replace('_', "-").to_ascii_uppercase()
    }

    /// Sets it to what a word of a command says; `none` or `auto` takes a value back.
    ///
    /// # Errors
    /// What it must be, in words.
    pub fn take(&self, one: &mut T, word: &str) -> Result<(), String> {
        held::take(&self.key, (self.held_mut)(one), word)
    }

    /// Its value as replies have it.
    #[must_use]
    pub fn shown(&self, one: &T) -> Shown {
        (self.held)(one).shown(&self.key.takes)
    }

    /// Reads it from the table of the file that it belongs to.
    fn read(&self, one: &mut T, section: &Section) {
        (self.held_mut)(one).read(section, self.key.name(), &self.key.takes);
    }
}

/// The workloads of a tenant's table.
pub(super) fn workloads(tenant: &Section, name: &str) -> Vec<Workload> {
    let titled = |one: &Section, place: usize| title("workload", one.raw_text("name"), place);
    let sections = tenant.tables(name, titled);
    let one = |section: &Section| {
        let mut one = Workload::default();
        WORKLOAD
            .iter()
            .for_each(|field| field.read(&mut one, section));
        (!one.name.is_empty()).then_some(one)
    };
    sections.iter().filter_map(one).collect()
}

/// The promises of a tenant's table, but those that are wrong.
pub(super) fn slos(tenant: &Section, name: &str) -> Vec<Slo> {
    let titled = |one: &Section, place: usize| title("slo", one.raw_text("class"), place);
    let sections = tenant.tables(name, titled);
    let one = |section: &Section| {
        let latency = section.table("latency");
        let mut one = Slo::default();
        for field in SLO {
            match field.key.section() == "tenant.slo.latency" {
                true => field.read(&mut one, &latency),
                false => field.read(&mut one, section),
            }
        }
        let whole = section.gives("class") && (!latency.present() || one.at_most_ns.is_some());
        whole.then_some(one)
    };
    sections.iter().filter_map(one).collect()
}

fn title(list: &str, named: Option<&str>, place: usize) -> String {
    match named {
        Some(name) => format!("{list} {name:?}"),
        None => format!("{list} number {}", place + 1),
    }
}

/// Whether it is a name of a tenant or a workload: safe in a file name, a metric label and a
/// command line.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}
