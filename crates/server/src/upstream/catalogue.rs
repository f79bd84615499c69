//! How many partitions each tenant has before a cluster: written down at the cluster itself, so
//! that all fronts agree, and nobody looks for keys where they are not.

use std::collections::HashMap;

use front::{Topology, Value, CATALOGUE, TENANT};
use parking_lot::RwLock;

use super::talk::Talk;
use super::UpstreamOptions;

/// What this version writes, and all that it reads.
const VERSION: &str = "1";

/// Redirections that are followed.
const HOPS: usize = 5;

/// What is known of the catalogue.
#[derive(Default)]
pub struct Catalogue {
    parts: RwLock<HashMap<String, u16>>,
}

impl Catalogue {
    /// How many partitions a tenant has; none: not known.
    pub fn parts(&self, tenant: &str) -> Option<u16> {
        self.parts.read().get(tenant).copied()
    }

    /// Writes down how many these tenants are to have, unless that is written down.
    ///
    /// # Errors
    /// They have others, or the catalogue cannot be read or written.
    pub fn enroll(
        &self,
        tenants: &[(String, u32)],
        topology: &Topology,
        options: &UpstreamOptions,
    ) -> Result<(), String> {
        let known = |(name, parts): &(String, u32)| {
            self.parts(name)
                .is_some_and(|known| u32::from(known) == *parts)
        };
        if tenants.iter().all(known) {
            return Ok(());
        }
        let mut book = Book::open(topology, options)?;
        book.ask(&[b"HSETNX", CATALOGUE, b"version", VERSION.as_bytes()])?;
        let entries = book.ask(&[b"HGETALL", CATALOGUE])?;
        let entry = |name: &str| entries.get(name).and_then(Value::text).map(str::to_owned);
        let version = entry("version").unwrap_or_default();
        if version != VERSION {
            return Err(format!(
                "the catalogue {} at the cluster is of version {version:?}, and this is a version of Entremet that reads {VERSION} only",
                String::from_utf8_lossy(CATALOGUE)
            ));
        }
        for (name, wanted) in tenants {
            let field = format!("{TENANT}{name}");
            let said = match entry(&field) {
                Some(said) => said,
                None => {
                    let wanted = wanted.to_string();
                    book.ask(&[b"HSETNX", CATALOGUE, field.as_bytes(), wanted.as_bytes()])?;
                    // Another front may have been first.
                    let said = book.ask(&[b"HGET", CATALOGUE, field.as_bytes()])?;
                    said.text().unwrap_or_default().to_owned()
                }
            };
            let parts = said
                .parse()
                .ok()
                .filter(|parts| (1..=front::PARTS_MAX).contains(parts));
            let parts: u16 = parts.ok_or_else(|| {
                format!("the catalogue at the cluster says that tenant {name:?} has {said:?} partitions")
            })?;
            self.parts.write().insert(name.clone(), parts);
            if u32::from(parts) != *wanted {
                return Err(format!(
                    "tenant {name:?} was made with partitions = {parts}, and its keys are found by that: it cannot have {wanted}"
                ));
            }
        }
        Ok(())
    }
}

/// A connection to the node that has the catalogue.
pub struct Book<'o> {
    talk: Talk,
    options: &'o UpstreamOptions,
}

impl<'o> Book<'o> {
    /// Goes to where the catalogue is.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(topology: &Topology, options: &'o UpstreamOptions) -> Result<Self, String> {
        let node = topology.owner_of(CATALOGUE);
        let node = node.ok_or("no node of the cluster serves the catalogue of tenants")?;
        let talk = Talk::begin(node, options)?;
        Ok(Self { talk, options })
    }

    /// Asks, where the catalogue is now.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let mut why = String::new();
        for _ in 0..HOPS {
            match self.talk.ask(words) {
                Ok(value) => return Ok(value),
                Err(error) => why = error,
            }
            // Talk::ask puts "it says: " before an error.
            let moved = why
                .split_once("MOVED ")
                .and_then(|(_, rest)| rest.split_once(' '));
            let Some((_, node)) = moved else {
                break;
            };
            self.talk = Talk::begin(node, self.options)?;
        }
        Err(format!(
            "the catalogue of tenants at the cluster cannot be used: {why}"
        ))
    }
}
