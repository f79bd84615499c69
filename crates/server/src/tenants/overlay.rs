//! What was changed at run time, laid over the configuration file.
//!
//! A run-time change holds for the fields that it changed, and only as long as the file says of
//! them what it said then. A file that says something new wins, so that a password rotated there
//! takes effect whatever was set at run time before. All other fields follow the file.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use settings::tenant::{Setting, Settings};

use super::{Password, TenantSpec};

/// The password among the fields; its values are not logged.
const PASSWORD: &str = "password_hash";

/// The one table among the settings; its fields are changed one by one.
const LIMIT: &str = "limit.";

/// A change made at run time, which outlives the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// As versions before this rule wrote it, of tenants of the file and of others: all that held
    /// then.
    Set(Whole),
    /// The tenant was made at run time; the file does not name it.
    Made(Whole),
    /// The file names the tenant, and it differs from that in these fields.
    Fields {
        /// By name, as in [`fields_of`].
        fields: BTreeMap<String, Field>,
    },
    /// The file names the tenant, and it was removed.
    Removed,
    /// As the file says, again.
    Dropped,
}

/// All of a tenant but its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whole {
    /// PHC hash; none: no password.
    password_hash: Option<String>,
    /// The rest.
    settings: Box<Settings>,
}

/// A field that was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// What it was set to.
    now: Value,
    /// What the file said then.
    file: Value,
}

impl Change {
    /// The change that leaves `spec` in force, where the file says `file`.
    pub fn between(spec: &TenantSpec, file: Option<&TenantSpec>) -> Self {
        let Some(file) = file else {
            return Self::Made(Whole::of(spec));
        };
        let (now, file) = (fields_of(spec), fields_of(file));
        let differ = now
            .into_iter()
            .zip(file)
            .filter(|((_, now), (_, file))| now != file);
        let fields: BTreeMap<_, _> = differ
            .map(|((name, now), (_, file))| (name, Field { now, file }))
            .collect();
        if fields.is_empty() {
            Self::Dropped
        } else {
            Self::Fields { fields }
        }
    }

    /// What the file's password was when another was set at run time.
    pub fn file_password(&self) -> Option<Password> {
        let Self::Fields { fields } = self else {
            return None;
        };
        let phc = fields.get(PASSWORD)?.file.as_str()?;
        Some(Password::Hashed(phc.to_string()))
    }

    /// The keys of the file that it differs in, by name.
    pub fn keys(&self) -> Vec<&'static str> {
        let fields = match self {
            Self::Fields { fields } => Some(fields),
            _ => None,
        };
        let names = fields.into_iter().flat_map(BTreeMap::keys);
        let mut keys: Vec<_> = names.filter_map(|name| key_of(name)).collect();
        keys.sort_unstable();
        keys
    }
}

impl Whole {
    fn of(spec: &TenantSpec) -> Self {
        let password_hash = match &spec.password {
            Password::None => None,
            Password::Hashed(phc) => Some(phc.clone()),
        };
        Self {
            password_hash,
            settings: Box::new(spec.settings.clone()),
        }
    }

    fn spec(&self, name: &str) -> TenantSpec {
        TenantSpec {
            password: self
                .password_hash
                .clone()
                .map_or(Password::None, Password::Hashed),
            settings: (*self.settings).clone(),
            ..TenantSpec::new(name)
        }
    }
}

/// What became of a change when the file was read.
#[derive(Debug, PartialEq)]
pub struct Laid {
    /// The tenant; none: it is not there.
    pub spec: Option<TenantSpec>,
    /// The change from now on.
    pub change: Change,
    /// What an operator should know.
    pub notes: Vec<Note>,
}

/// What is said in the log of a run-time change when the file was read.
#[derive(Debug, PartialEq)]
pub enum Note {
    /// It holds, so that the file's word does not.
    Holds(String),
    /// It was made by an older version, which did not note what the file said then: it holds, so
    /// that the file's word does not.
    HoldsUnchecked(String),
    /// The file says something new, so that it does not hold any more.
    Dropped(String),
    /// The file names a tenant that was removed.
    StaysRemoved,
}

impl Note {
    /// Something that was wished for does not hold: in the file, or at run time.
    pub fn surprises(&self) -> bool {
        !matches!(self, Self::Holds(_))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds(what) => write!(f, "set at run time, and holds until the file changes it: {what}"),
            Self::HoldsUnchecked(what) => write!(
                f,
                "set at run time under an older version, and holds until the file changes it: {what}; what was meant to follow \
                 the file is set with ENTREMET TENANT SET"
            ),
            Self::Dropped(what) => write!(f, "the file has changed it, so what was set at run time is dropped: {what}"),
            Self::StaysRemoved => write!(
                f,
                "is in the file, but was removed at run time and stays so: take it out of the file, or bring it back with \
                 ENTREMET TENANT SET"
            ),
        }
    }
}

/// Lays a change over what the file says of the tenant.
pub fn lay(name: &str, file: Option<&TenantSpec>, change: &Change) -> Laid {
    let gone = |change, notes| Laid {
        spec: None,
        change,
        notes,
    };
    match (file, change) {
        (None, Change::Set(whole) | Change::Made(whole)) => Laid {
            spec: Some(whole.spec(name)),
            change: Change::Made(whole.clone()),
            notes: Vec::new(),
        },
        (None, Change::Fields { fields }) => {
            let left = format!("{}; the file names the tenant no more", all(fields));
            gone(Change::Dropped, vec![Note::Dropped(left)])
        }
        (None, Change::Removed | Change::Dropped) => gone(Change::Dropped, Vec::new()),
        (Some(_), Change::Removed) => gone(Change::Removed, vec![Note::StaysRemoved]),
        (Some(file), Change::Dropped) => as_in(file, Vec::new()),
        (Some(file), Change::Made(whole)) => {
            let notes = match Change::between(&whole.spec(name), Some(file)) {
                Change::Fields { fields } => vec![Note::Dropped(all(&fields))],
                _ => Vec::new(),
            };
            as_in(file, notes)
        }
        (Some(file), Change::Set(whole)) => {
            let spec = whole.spec(name);
            let change = Change::between(&spec, Some(file));
            let notes = match &change {
                Change::Fields { fields } => vec![Note::HoldsUnchecked(all(fields))],
                _ => Vec::new(),
            };
            Laid {
                spec: Some(spec),
                change,
                notes,
            }
        }
        (Some(file), Change::Fields { fields }) => lay_fields(file, fields),
    }
}

fn as_in(file: &TenantSpec, notes: Vec<Note>) -> Laid {
    Laid {
        spec: Some(file.clone()),
        change: Change::Dropped,
        notes,
    }
}

fn lay_fields(file: &TenantSpec, changed: &BTreeMap<String, Field>) -> Laid {
    let mut fields = fields_of(file);
    let (mut holds, mut dropped) = (BTreeMap::new(), BTreeMap::new());
    for (name, field) in changed {
        match fields.get_mut(name) {
            Some(value) if *value == field.file => {
                *value = field.now.clone();
                holds.insert(name.clone(), field.clone());
            }
            Some(value) if *value != field.now => {
                let file = value.clone();
                let now = field.now.clone();
                dropped.insert(name.clone(), Field { now, file });
            }
            // The file has come to say the same, or this version knows no such field.
            _ => {}
        }
    }
    let mut notes = Vec::new();
    if !holds.is_empty() {
        notes.push(Note::Holds(all(&holds)));
    }
    if !dropped.is_empty() {
        notes.push(Note::Dropped(all(&dropped)));
    }
    let spec = with_fields(file, fields);
    Laid {
        change: Change::between(&spec, Some(file)),
        spec: Some(spec),
        notes,
    }
}

/// Fields with both values; of a password only that there is another.
fn all(fields: &BTreeMap<String, Field>) -> String {
    let one = |(name, field): (&String, &Field)| match name.as_str() {
        PASSWORD => "the password".to_string(),
        name => format!(
            "{} = {} (the file: {})",
            key_of(name).unwrap_or(name),
            said(name, &field.now),
            said(name, &field.file)
        ),
    };
    fields.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What the file calls a field; none: this version knows no such field.
fn key_of(field: &str) -> Option<&'static str> {
    match field {
        PASSWORD => Some(PASSWORD),
        field => Setting::stored(field).map(Setting::name),
    }
}

/// A field's value as the file writes it.
fn said(field: &str, value: &Value) -> String {
    let nothing = TenantSpec::new("");
    let mut fields = fields_of(&nothing);
    fields.insert(field.to_string(), value.clone());
    let settings = with_fields(&nothing, fields).settings;
    Setting::stored(field).map_or_else(|| value.to_string(), |setting| setting.text(&settings))
}

/// A tenant's fields by name, each of which can be changed alone. Every tenant has the same.
fn fields_of(spec: &TenantSpec) -> BTreeMap<String, Value> {
    let mut fields = object(&spec.settings);
    for (name, value) in object(&spec.settings.limit) {
        fields.insert(format!("{LIMIT}{name}"), value);
    }
    fields.remove(LIMIT.trim_end_matches('.'));
    let password = match &spec.password {
        Password::None => Value::Null,
        Password::Hashed(phc) => Value::from(phc.as_str()),
    };
    fields.insert(PASSWORD.to_string(), password);
    fields
}

fn object(of: &impl Serialize) -> BTreeMap<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        other => unreachable!("settings are a JSON object, not {other:?}"),
    }
}

/// `file` with these fields. Where one is of no use to this version, all stays as in the file.
fn with_fields(file: &TenantSpec, mut fields: BTreeMap<String, Value>) -> TenantSpec {
    let password = match fields.remove(PASSWORD) {
        Some(Value::String(phc)) => Password::Hashed(phc),
        _ => Password::None,
    };
    let (limits, settings): (Vec<_>, Vec<_>) = fields
        .into_iter()
        .partition(|(name, _): &(String, Value)| name.starts_with(LIMIT));
    let limits: Map<_, _> = limits
        .into_iter()
        .map(|(name, value)| (name[LIMIT.len()..].to_string(), value))
        .collect();
    let mut settings: Map<_, _> = settings.into_iter().collect();
    settings.insert(LIMIT.trim_end_matches('.').to_string(), limits.into());
    match serde_json::from_value(Value::Object(settings)) {
        Ok(settings) => TenantSpec {
            password,
            settings,
            ..file.clone()
        },
        Err(_) => file.clone(),
    }
}

#[cfg(test)]
mod tests;
