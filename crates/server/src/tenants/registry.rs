//! The list of tenants: from the configuration file, changed at run time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use policy::PrincipalId;

use super::store::{Change, Store, StoreError};
use super::{Pool, Settings, Tenant, TenantSpec, Totals, DEFAULT};

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
    /// The tenant of untagged connections cannot go.
    #[error("the tenant 'default' cannot be removed; give it a password to close it")]
    Default,
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

/// Every tenant of this process.
pub struct Registry {
    tenants: RwLock<Tenants>,
    /// Held through a whole change, so that file and memory change in the same order.
    store: Mutex<Store>,
    next_id: Mutex<u32>,
    cores: usize,
    pool: Arc<Pool>,
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
    ) -> Result<Self, StoreError> {
        let registry = Self {
            tenants: RwLock::default(),
            store: Mutex::new(Store::open(directory)?),
            next_id: Mutex::new(0),
            cores,
            pool,
        };
        registry.reload(specs);
        Ok(registry)
    }

    /// Brings the list in line with a configuration read anew; returns the tenants that are gone.
    pub fn reload(&self, specs: &[TenantSpec]) -> Vec<Arc<Tenant>> {
        let store = self.store.lock();
        let mut wanted: BTreeMap<String, TenantSpec> = specs
            .iter()
            .map(|spec| (spec.name.clone(), spec.clone()))
            .collect();
        // Untagged connections are served, best effort, unless the configuration says otherwise.
        wanted
            .entry(DEFAULT.to_string())
            .or_insert_with(|| TenantSpec::new(DEFAULT));
        for (name, change) in store.changes() {
            match change.spec(name) {
                Some(spec) => wanted.insert(name.clone(), spec),
                None => wanted.remove(name),
            };
        }
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
        for spec in wanted.into_values() {
            self.install(&mut tenants, spec);
        }
        gone
    }

    /// The tenant of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Tenant>> {
        self.tenants.read().by_name.get(name).cloned()
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

    /// What all are promised together.
    pub fn totals(&self) -> Totals {
        self.tenants.read().totals
    }

    /// Adds or changes a tenant, for good. `edit` is given the tenant as it is, or a new one's defaults, and what the
    /// others are promised; no other change comes between what it sees and what it does.
    ///
    /// # Errors
    /// A bad name, `edit`'s, or the change could not be written down (nothing has changed then).
    pub fn change(
        &self,
        name: &str,
        edit: impl FnOnce(&mut TenantSpec, &Totals) -> Result<(), RegistryError>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        if !valid_name(name) {
            return Err(RegistryError::Name(name.to_string()));
        }
        let mut store = self.store.lock();
        let (mut spec, mut others) = (TenantSpec::new(name), self.totals());
        if let Some(tenant) = self.get(name) {
            spec = tenant.spec();
            others = others.without(&spec.settings);
        }
        edit(&mut spec, &others)?;
        store.record(name, Change::set(&spec))?;
        let mut tenants = self.tenants.write();
        tenants.totals = others.with(&spec.settings);
        Ok(self.install(&mut tenants, spec))
    }

    /// Removes a tenant, for good. Its data stays on the disk until it is deleted by hand or the tenant
    /// comes back. `check` is given what it and what the others are promised, and may refuse.
    ///
    /// # Errors
    /// No such tenant, the default tenant, `check`'s, or the change could not be written down.
    pub fn remove(
        &self,
        name: &str,
        check: impl FnOnce(&Settings, &Totals) -> Result<(), RegistryError>,
    ) -> Result<Arc<Tenant>, RegistryError> {
        if name == DEFAULT {
            return Err(RegistryError::Default);
        }
        let mut store = self.store.lock();
        let unknown = || RegistryError::Unknown(name.to_string());
        let tenant = self.get(name).ok_or_else(unknown)?;
        let settings = tenant.settings();
        let others = self.totals().without(&settings);
        check(&settings, &others)?;
        store.record(name, Change::Removed)?;
        tenant.removed.store(true, Ordering::Release);
        let mut tenants = self.tenants.write();
        tenants.by_name.remove(name);
        tenants.totals = others;
        Ok(tenant)
    }

    fn install(&self, tenants: &mut Tenants, spec: TenantSpec) -> Arc<Tenant> {
        if let Some(tenant) = tenants.by_name.get(&spec.name) {
            tenant.gate.change(spec.password);
            *tenant.settings.write() = spec.settings;
            return Arc::clone(tenant);
        }
        let mut next_id = self.next_id.lock();
        let tenant = Arc::new(Tenant::new(
            PrincipalId(*next_id),
            spec,
            self.cores,
            &self.pool,
        ));
        *next_id += 1;
        tenants
            .by_name
            .insert(tenant.name.clone(), Arc::clone(&tenant));
        tenant
    }
}

/// 1 to 64 characters that are safe in a file name, a metric label and a command line.
pub fn valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}
