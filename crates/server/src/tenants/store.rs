//! Tenants that were added or changed at run time: a JSON file in the data directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Password, Settings, TenantSpec};

/// What the file could not do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be read or written.
    #[error(
        "tenant file {path}: {source}; check the permissions and free space of the data directory"
    )]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not what we wrote.
    #[error("tenant file {path} is damaged: {source}; restore it from a backup or move it away to drop run-time tenants")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the JSON breaks.
        source: serde_json::Error,
    },
}

/// A change made at run time, which outlives the process and wins over the configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// The tenant is there, with these settings.
    Set {
        /// PHC hash; none: no password.
        password_hash: Option<String>,
        /// The rest.
        settings: Box<Settings>,
    },
    /// The tenant named in the configuration file is gone.
    Removed,
}

impl Change {
    /// The change that leaves `spec` in force.
    pub fn set(spec: &TenantSpec) -> Self {
        let password_hash = match &spec.password {
            Password::None => None,
            Password::Hashed(phc) => Some(phc.clone()),
        };
        Self::Set {
            password_hash,
            settings: Box::new(spec.settings.clone()),
        }
    }

    /// The tenant that the change describes, if it is not a removal.
    pub fn spec(&self, name: &str) -> Option<TenantSpec> {
        match self {
            Self::Removed => None,
            Self::Set {
                password_hash,
                settings,
            } => Some(TenantSpec {
                name: name.to_string(),
                password: password_hash
                    .clone()
                    .map_or(Password::None, Password::Hashed),
                settings: (**settings).clone(),
            }),
        }
    }
}

/// The file.
pub struct Store {
    path: PathBuf,
    changes: BTreeMap<String, Change>,
}

impl Store {
    /// Reads the file, or starts empty where there is none.
    ///
    /// # Errors
    /// An unreadable or damaged file.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join("tenants.json");
        let changes = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|source| StoreError::Damaged {
                path: path.clone(),
                source,
            })?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        Ok(Self { path, changes })
    }

    /// Every change, by tenant name.
    pub fn changes(&self) -> &BTreeMap<String, Change> {
        &self.changes
    }

    /// Records a change and has it on the disk before it returns; none: forgets the tenant's changes.
    ///
    /// # Errors
    /// The file could not be written; the earlier content stays in force.
    pub fn record(&mut self, name: &str, change: Option<Change>) -> Result<(), StoreError> {
        let mut next = self.changes.clone();
        match change {
            Some(change) => next.insert(name.to_string(), change),
            None => next.remove(name),
        };
        self.write(&next).map_err(|source| StoreError::Io {
            path: self.path.clone(),
            source,
        })?;
        self.changes = next;
        Ok(())
    }

    /// Written aside and renamed, so that a crash leaves the old file or the new one, never half.
    fn write(&self, changes: &BTreeMap<String, Change>) -> io::Result<()> {
        let aside = self.path.with_extension("json.new");
        let mut file = File::create(&aside)?;
        file.write_all(&serde_json::to_vec_pretty(changes)?)?;
        file.sync_all()?;
        fs::rename(&aside, &self.path)?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}
