//! What is to be moved, as the command line has it, and which partitions a slot has.

use std::str::FromStr;

use front::{Space, SLOTS};

use super::slots::Slots;

/// A partition of a tenant, or a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A hash slot of the engine.
    Slot(u16),
    /// Of this tenant the partition of this number; none: the only one.
    Partition(String, Option<u16>),
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let slot = text.parse().ok().filter(|slot| *slot < SLOTS);
            return slot.map(Self::Slot).ok_or_else(|| {
                format!(
                    "slots are 0 to {}; a tenant of this name is {text}:0",
                    SLOTS - 1
                )
            });
        }
        let (name, part) = match text.split_once(':') {
            None => (text, None),
            Some((name, part)) => {
                let part = part
                    .parse()
                    .map_err(|_| format!("{part} is no partition's number"))?;
                (name, Some(part))
            }
        };
        match settings::tenant::is_name(name) {
            true => Ok(Self::Partition(name.to_owned(), part)),
            false => Err("expected TENANT, TENANT:PARTITION or a slot's number".into()),
        }
    }
}

impl What {
    /// Its slot.
    ///
    /// # Errors
    /// There is no such partition.
    pub fn slot(&self, tenants: &[(String, Space)]) -> Result<u16, String> {
        let (name, part) = match self {
            Self::Slot(slot) => return Ok(*slot),
            Self::Partition(name, part) => (name, part),
        };
        let tenant = tenants.iter().find(|(known, _)| known == name);
        let (_, space) =
            tenant.ok_or_else(|| format!("no tenant {name} is written down at the cluster"))?;
        match (part, space.parts()) {
            (None, 1) => Ok(space.slot(0)),
            (Some(part), parts) if *part < parts => Ok(space.slot(*part)),
            (_, parts) => Err(format!(
                "tenant {name} has {parts} partitions: write {name}:0 to {name}:{}",
                parts - 1
            )),
        }
    }
}

/// A partition as it is shown.
pub fn partition(name: &str, space: &Space, part: u16) -> String {
    match space.parts() {
        1 => name.to_owned(),
        _ => format!("{name}:{part}"),
    }
}

/// Slots with what lies in them.
pub fn slots_with(slots: Slots, tenants: &[(String, Space)]) -> String {
    let mut inside = Vec::new();
    for (name, space) in tenants {
        let parts = (0..space.parts()).filter(|part| slots.has(space.slot(*part)));
        inside.extend(parts.map(|part| partition(name, space, part)));
    }
    match inside.is_empty() {
        true => slots.to_string(),
        false => format!("{slots} ({})", inside.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_slots_are_told_apart() {
        let read = |text: &str| text.parse::<What>();
        assert_eq!(read("16383"), Ok(What::Slot(16_383)));
        assert_eq!(read("web"), Ok(What::Partition("web".into(), None)));
        assert_eq!(read("12:0"), Ok(What::Partition("12".into(), Some(0))));
        for wrong in ["16384", "", ":1", "web:", "web:x", "a b", "web:-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let tenants = vec![
            ("one".to_owned(), Space::of("one")),
            ("wide".to_owned(), Space::in_parts("wide", 4)),
        ];
        let slot = |text: &str| read(text).expect("what").slot(&tenants);
        assert_eq!(slot("one"), Ok(Space::of("one").slot(0)));
        assert_eq!(slot("wide:3"), Ok(tenants[1].1.slot(3)));
        for wrong in ["wide", "wide:4", "one:1", "other"] {
            assert!(slot(wrong).is_err(), "{wrong}");
        }
        let third = tenants[1].1.slot(3);
        assert_eq!(
            slots_with(third.into(), &tenants),
            format!("slot {third} (wide:3)")
        );
        assert_eq!(
            slots_with((third + 1).into(), &tenants),
            format!("slot {}", third + 1)
        );
    }
}
