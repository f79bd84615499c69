//! The list of tenants: from the configuration file, changed at run time.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use policy::PrincipalId;
use settings::tenant::{is_name, Settings, Totals};
use stage::Clock;

use super::overlay::{lay, Change};
use super::store::{Store, StoreError};
use super::{Password, Pool, Tenant, TenantSpec, DEFAULT};
use crate::slo::Meters;

/// The principal of newcomers.
const NOBODY: PrincipalId = PrincipalId(0);

/// Tenants that are looked at for one with a password.
const NEAR_MAX: usize = 64;

/// Why the list could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No such tenant.
    #[error("no such tenant '{0}'")]
    Unknown(String),
    /// The name breaks the rules.
    #[error("tenant name '{0}' must be 1 to 64 characters of [A-Za-z0-9_.-]")]
    Name(String),
    /// What is asked for does not go together with the rest.
    #[error("{0}")]
    Infeasible(String),
    /// The change could not be made to last.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The list, and what those in it are promised together.
#[derive(Default)]
struct Tenants {
    by_name: BTreeMap<String, Arc<Tenant>>,
    totals: Totals,
}

/// Where the list comes from.
struct Sources {
    /// What the configuration file says, by name.
    file: BTreeMap<String, TenantSpec>,
    /// What was changed at run time.
    store: Store,
}

/// Every tenant of this process.
pub struct Registry {
    tenants: RwLock<Tenants>,
    /// Held through a whole change, so that files and memory change in the same order.
    sources: Mutex<Sources>,
    next_id: Mutex<u32>,
    nobody: Arc<Tenant>,
    cores: usize,
    pool: Arc<Pool>,
    clock: Arc<dyn Clock + Send + Sync>,
}

impl Registry {
    /// The tenants of the configuration, with what was changed at run time laid over them.
    ///
    /// # Errors
    /// The tenant file cannot be read.
    pub fn open(
        directory: &Path,
        specs: &[TenantSpec],
        cores: usize,
        pool: Arc<Pool>,
        clock: Arc<dyn Clock + Send + Sync>,
    ) -> Result<Self, StoreError> {
        let registry = Self {
            tenants: RwLock::default(),
            sources: Mutex::new(Sources {
                file: BTreeMap::new(),
                store: Store::open(directory)?,
            }),
            next_id: Mutex::new(NOBODY.0 + 1),
            nobody: Arc::new(Tenant::new(
                NOBODY,
                TenantSpec::new("(newcomers)"),
                cores,
                &pool,
            )),
            cores,
            pool,
            clock,
        };
        registry.reload(specs);
        Ok(registry)
    }

    /// Brings the list in line with a configuration read anew; returns the tenants that are gone.
    pub fn reload(&self, specs: &[TenantSpec]) -> Vec<Arc<Tenant>> {
        let mut sources = self.sources.lock();
        let wanted = sources.read(specs);
        let mut tenants = self.tenants.write();
        let gone: Vec<_> = tenants
            .by_name
            .iter()
            .filter(|(name, _)| !wanted.contains_key(*name))
            .map(|(_, tenant)| Arc::clone(tenant))
            .collect();
        for tenant in &gone {
            tenant.removed.store(true, Ordering::Release);
            tenants.by_name.remove(&tenant.name);
        }
        tenants.totals = wanted.values().map(|spec| &spec.settings).collect();
        for (name, spec) in wanted {
            self.install(&mut tenants, spec, sources.store.changes().get(&name));
        }
        gone
    }

    /// Whom connections speak for until they speak for a tenant: a principal of every stage, and
    /// nothing else of a tenant. No tenant can have its name.
    pub fn nobody(&self) -> &Arc<Tenant> {
        &self.nobody
    }

    /// The tenant that a connection speaks for which has not named one; none: it must log in.
    pub fn open_default(&self) -> Option<Arc<Tenant>> {
        self.get(DEFAULT).filter(|tenant| tenant.open())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.tenants.read().by_name.len()
    }

    /// The tenant of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Tenant>> {
        self.tenants.read().by_name.get(name).cloned()
    }

    /// The hash of the first tenant with a password behind this name, in the order of names and
    /// round again; none: no tenant near has one.
    pub fn hash_near(&self, name: &[u8]) -> Option<String> {
        let tenants = self.tenants.read();
        let name = String::from_utf8_lossy(name);
        let behind = tenants
            .by_name
            .range::<str, _>((Excluded(&*name), Unbounded));
        let near = behind.chain(&tenants.by_name).take(NEAR_MAX);
        let hash = |(_, tenant): (&String, &Arc<Tenant>)| match tenant.gate.password() {
            Password::Hashed(phc) => Some(phc),
            Password::None => None,
        };
        near.filter_map(hash).next()
    }

    /// Every tenant, by name.
    pub fn list(&self) -> Vec<Arc<Tenant>> {
        self.list_where(|_| true)
    }

    /// Those of which `wanted` holds, by name.
    pub fn list_where(&self, wanted: impl Fn(&Tenant) -> bool) -> Vec<Arc<Tenant>> {
        let tenants = self.tenants.read();
        let wanted = tenants.by_name.values().filter(|tenant| wanted(tenant));
        wanted.cloned().collect()
    }

    /// Whether one of them may run scripts at an engine.
    pub fn run_scripts(&self) -> bool {
        let tenants = self.tenants.read();
        tenants.by_name.values().any(|tenant| tenant.may_script())
    }

    /// What all are promised together.
    pub fn totals(&self) -> Totals {
        self.tenants.read().totals
    }

    /// Adds or changes a tenant, for good. `edit` is given the tenant as it is, or a new one's
    /// defaults, and what the others are promised; no other change comes between what it sees and
    /// what it does.
    ///
    /// # Errors
    /// A bad name, `edit`'s, or the change could not be written down (nothing has changed then).
    pub fn change(
        &self,
        name: &str,
        edit: impl FnOnce(&mut TenantSpec, &Totals) -> Result<(), RegistryError>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        if !is_name(name) {
            return Err(RegistryError::Name(name.to_string()));
        }
        let mut sources = self.sources.lock();
        let Sources { file, store } = &mut *sources;
        let file = file.get(name);
        let (mut spec, others) = self.as_now(name, file);
        edit(&mut spec, &others)?;
        let change = Change::between(&spec, file);
        store.record(name, change.clone())?;
        let mut tenants = self.tenants.write();
        tenants.totals = others.with(&spec.settings);
        Ok(self.install(&mut tenants, spec, Some(&change)))
    }

    /// A tenant as it is, or a new one's defaults, and what the others are promised.
    pub fn now(&self, name: &str) -> (TenantSpec, Totals) {
        self.as_now(name, self.sources.lock().file.get(name))
    }

    fn as_now(&self, name: &str, file: Option<&TenantSpec>) -> (TenantSpec, Totals) {
        match self.get(name) {
            Some(tenant) => {
                let spec = tenant.spec();
                let others = self.totals().without(&spec.settings);
                (spec, others)
            }
            // One that was removed comes back as the file has it.
            None => {
                let spec = file.cloned().unwrap_or_else(|| TenantSpec::new(name));
                (spec, self.totals())
            }
        }
    }

    /// Removes a tenant, for good. Its data stays on the disk until it is deleted by hand or the
    /// tenant comes back. `check` is given what it and what the others are promised, and may
    /// refuse.
    ///
    /// # Errors
    /// No such tenant, `check`'s, or the change could not be written down.
    pub fn remove(
        &self,
        name: &str,
        check: impl FnOnce(&Settings, &Totals) -> Result<(), RegistryError>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        let mut sources = self.sources.lock();
        let unknown = || RegistryError::Unknown(name.to_string());
        let tenant = self.get(name).ok_or_else(unknown)?;
        let settings = tenant.settings();
        let others = self.totals().without(&settings);
        check(&settings, &others)?;
        let change = match sources.file.contains_key(name) {
            true => Change::Removed,
            false => Change::Dropped,
        };
        sources.store.record(name, change)?;
        tenant.removed.store(true, Ordering::Release);
        let mut tenants = self.tenants.write();
        tenants.by_name.remove(name);
        tenants.totals = others;
        Ok(tenant)
    }

    fn install(
        &self,
        tenants: &mut Tenants,
        spec: TenantSpec,
        change: Option<&Change>,
    ) -> Arc<Tenant> {
        let set_at_run_time = change.map(Change::keys).unwrap_or_default();
        if let Some(tenant) = tenants.by_name.get(&spec.name) {
            tenant.gate.change(spec.password);
            self.measure(tenant, &spec.settings);
            *tenant.settings.write() = spec.settings;
            *tenant.set_at_run_time.write() = set_at_run_time;
            return Arc::clone(tenant);
        }
        let mut next_id = self.next_id.lock();
        let settings = spec.settings.clone();
        let tenant = Arc::new(Tenant::new(
            PrincipalId(*next_id),
            spec,
            self.cores,
            &self.pool,
        ));
        self.measure(&tenant, &settings);
        *tenant.set_at_run_time.write() = set_at_run_time;
        *next_id += 1;
        tenants
            .by_name
            .insert(tenant.name.clone(), Arc::clone(&tenant));
        tenant
    }

    /// What it is promised from now on is measured.
    fn measure(&self, tenant: &Tenant, settings: &Settings) {
        let mut meters = tenant.meters.write();
        let next = Meters::new(settings, &meters, self.cores, self.clock.now());
        *meters = Arc::new(next);
    }
}

impl Sources {
    /// The tenants there are when the file says `specs`: what was changed at run time is laid over
    /// them.
    fn read(&mut self, specs: &[TenantSpec]) -> BTreeMap<String, TenantSpec> {
        let mut file = BTreeMap::new();
        for spec in specs {
            let mut spec = spec.clone();
            let before = self.file.get(&spec.name).map(|spec| spec.password.clone());
            let change = self.store.changes().get(&spec.name);
            let then = change.and_then(Change::file_password);
            spec.recognise(before.iter().chain(&then));
            file.insert(spec.name.clone(), spec);
        }
        let mut wanted = file.clone();
        let mut revised = Vec::new();
        for (name, change) in self.store.changes().clone() {
            let laid = lay(&name, file.get(&name), &change);
            for note in &laid.notes {
                if note.surprises() {
                    tracing::warn!(tenant = name, "{note}");
                } else {
                    tracing::info!(tenant = name, "{note}");
                }
            }
            match laid.spec {
                Some(spec) => wanted.insert(name.clone(), spec),
                None => wanted.remove(&name),
            };
            if laid.change != change {
                revised.push((name, laid.change));
            }
        }
        self.store.revise(revised);
        self.file = file;
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::Plain;

    /// What the file says when it gives the password in plain text.
    fn plain(password: &str, weight: f64) -> TenantSpec {
        let mut spec = TenantSpec::new("beta");
        spec.password = Password::hash(password.as_bytes()).unwrap();
        spec.plain = Some(Plain::new(password));
        spec.settings.weight = weight;
        spec
    }

    fn open(directory: &Path, spec: TenantSpec) -> Registry {
        let clock = Arc::new(stage::ManualClock::default());
        Registry::open(directory, &[spec], 1, Pool::new(1 << 20), clock).unwrap()
    }

    fn set_weight(registry: &Registry, weight: f64) {
        let edit = |spec: &mut TenantSpec, _: &Totals| {
            spec.settings.weight = weight;
            Ok(())
        };
        registry.change("beta", edit).unwrap();
    }

    fn now(registry: &Registry, password: &str) -> (bool, f64) {
        let beta = registry.get("beta").unwrap();
        let spec = beta.spec();
        (
            Plain::new(password).is(&spec.password),
            spec.settings.weight,
        )
    }

    #[test]
    fn a_rotated_password_holds_after_a_run_time_change_and_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let registry = open(directory.path(), plain("one", 1.0));
        set_weight(&registry, 5.0);
        assert_eq!(registry.get("beta").unwrap().set_at_run_time(), ["weight"]);
        registry.reload(&[plain("two", 1.0)]);
        assert_eq!(now(&registry, "two"), (true, 5.0));
        let registry = open(directory.path(), plain("three", 1.0));
        assert_eq!(now(&registry, "three"), (true, 5.0));
    }

    #[test]
    fn a_change_that_gave_way_to_the_file_does_not_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let registry = open(directory.path(), plain("one", 1.0));
        set_weight(&registry, 5.0);
        registry.reload(&[plain("one", 7.0)]);
        assert_eq!(now(&registry, "one"), (true, 7.0));
        let registry = open(directory.path(), plain("one", 1.0));
        assert_eq!(
            now(&registry, "one"),
            (true, 1.0),
            "not 5, though the file says what it said then"
        );
    }

    #[test]
    fn a_plain_password_that_stays_the_same_is_no_change() {
        let directory = tempfile::tempdir().unwrap();
        let registry = open(directory.path(), plain("one", 1.0));
        let hash = |registry: &Registry| registry.get("beta").unwrap().spec().password;
        let first = hash(&registry);
        registry.reload(&[plain("one", 1.0)]);
        assert_eq!(
            hash(&registry),
            first,
            "who is logged in need not be checked anew"
        );
        let set = Password::hash(b"set").unwrap();
        let edit = |spec: &mut TenantSpec, _: &Totals| {
            spec.password = set.clone();
            Ok(())
        };
        registry.change("beta", edit).unwrap();
        registry.reload(&[plain("one", 1.0)]);
        assert_eq!(hash(&registry), set);
        let registry = open(directory.path(), plain("one", 1.0));
        assert_eq!(
            hash(&registry),
            set,
            "also after a restart, when the file's hash is new"
        );
        registry.reload(&[plain("rotated", 1.0)]);
        assert_eq!(now(&registry, "rotated"), (true, 1.0));
    }

    #[test]
    fn one_that_was_removed_comes_back_as_the_file_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let registry = open(directory.path(), plain("one", 3.0));
        registry.remove("beta", |_, _| Ok(())).unwrap();
        registry.reload(&[plain("one", 3.0)]);
        assert!(registry.get("beta").is_none());
        registry.change("beta", |_, _| Ok(())).unwrap();
        assert_eq!(now(&registry, "one"), (true, 3.0));
    }
}
