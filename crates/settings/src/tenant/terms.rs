//! What a text says of a tenant.

use std::collections::BTreeMap;

use super::{Settings, SETTINGS};
use crate::Section;

/// What a text says of a tenant; defaults where it says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// All settings.
    pub settings: Settings,
    /// The keys that the text gives itself, without `tenant.`, in the order of [`SETTINGS`].
    pub given: Vec<&'static str>,
}

impl Terms {
    /// Reads a tenant's table. What is wrong is reported, and stands for its default or for
    /// nothing.
    pub fn read(tenant: &Section) -> Self {
        let mut terms = Self {
            settings: Settings::default(),
            given: Vec::new(),
        };
        let mut tables: BTreeMap<&str, Section> = BTreeMap::new();
        for setting in SETTINGS {
            let (section, name) = match setting.name().split_once('.') {
                None => (tenant, setting.name()),
                Some((table, name)) => {
                    let read = || tenant.table(table);
                    (&*tables.entry(table).or_insert_with(read), name)
                }
            };
            setting.read(&mut terms.settings, section, name);
            if section.gives(name) {
                terms.given.push(setting.name());
            }
        }
        for doubt in terms.settings.doubts() {
            tenant.doubt(&doubt);
        }
        terms
    }

    /// Whether the text gives the key itself; `name` is without `tenant.`.
    #[must_use]
    pub fn gives(&self, name: &str) -> bool {
        self.given.contains(&name)
    }
}
