//! Changes of tenants while the server runs: the one place from which cores and databases learn of
//! them, whether an operator's command or a configuration read anew brought them.
//!
//! Everything here may wait for the disk: it is run on handlers and on the binary's main thread,
//! not on cores.

use std::sync::Arc;

use policy::Durability;
use settings::problem::Severity;
use settings::tenant::{Doubt, Room, Settings, Totals};

use super::{News, Shared};
use crate::tenants::{Allotments, RegistryError, Tenant, TenantSpec};

impl Shared {
    /// Adds or changes a tenant, for good. `edit` is given the tenant as it is, or a new one's
    /// defaults.
    ///
    /// # Errors
    /// A bad name, a promise that cannot be kept, `edit`'s, or the change could not be written
    /// down; nothing has changed then.
    pub fn change_tenant(
        &self,
        name: &str,
        edit: impl FnOnce(&mut TenantSpec) -> Result<(), RegistryError>,
    ) -> Result<(), RegistryError> {
        let known = self.tenants.get(name).is_some();
        let tenant = self.tenants.change(name, |spec, others| {
            if !known {
                let more = self.tenants.count() + 1;
                self.plan_for(more).map_err(RegistryError::Infeasible)?;
            }
            self.changes(spec, others, edit)?;
            self.enroll(spec)
        })?;
        self.take_over(&tenant);
        self.seat();
        self.allot_memory();
        Ok(())
    }

    /// What would come of a change of a tenant, in words; nothing is changed.
    ///
    /// # Errors
    /// It would be refused.
    pub fn check_tenant(
        &self,
        name: &str,
        edit: impl FnOnce(&mut TenantSpec) -> Result<(), RegistryError>,
    ) -> Result<Vec<String>, RegistryError> {
        let (mut spec, others) = self.tenants.now(name);
        self.changes(&mut spec, &others, edit)?;
        let doubts = spec.settings.doubts();
        Ok(doubts.iter().map(ToString::to_string).collect())
    }

    /// Changes what a tenant is promised, where the `others` are promised that.
    fn changes(
        &self,
        spec: &mut TenantSpec,
        others: &Totals,
        edit: impl FnOnce(&mut TenantSpec) -> Result<(), RegistryError>,
    ) -> Result<(), RegistryError> {
        let was_operator = spec.settings.admin;
        let read_replicas = spec.settings.may_lag_ns().is_some();
        let ran_scripts = spec.settings.scripts;
        edit(spec)?;
        if was_operator && !spec.settings.admin {
            keep_an_operator(others)?;
        }
        if !read_replicas && spec.settings.may_lag_ns().is_some() {
            self.has_replicas()?;
        }
        if !ran_scripts && spec.settings.scripts && self.upstream.is_none() {
            let why = "scripts have no effect: no engine keeps the data";
            return Err(RegistryError::Infeasible(why.into()));
        }
        self.feasible(&spec.settings, others)?;
        self.fits_the_device(&spec.name, &spec.settings)
    }

    /// Writes down at a cluster how many partitions a tenant has: it keeps them.
    fn enroll(&self, spec: &TenantSpec) -> Result<(), RegistryError> {
        let parts = spec.settings.partitions;
        let enrolled = match &self.upstream {
            Some(upstream) => upstream.enroll(&[(spec.name.clone(), parts)]),
            None if parts > 1 => Err("partitions have no effect: all data is kept here".into()),
            None => Ok(()),
        };
        enrolled.map_err(RegistryError::Infeasible)
    }

    /// Replicas can be read from where there are some.
    fn has_replicas(&self) -> Result<(), RegistryError> {
        let why = match self.upstream.as_ref().filter(|it| it.options.cluster) {
            None => "no cluster keeps the data",
            Some(upstream) if upstream.found().replicas.is_empty() => {
                "no node of the cluster has a replica that is there; add one first"
            }
            Some(_) => return Ok(()),
        };
        let why = format!("reads = \"replica\" has no effect: {why}");
        Err(RegistryError::Infeasible(why))
    }

    /// Removes a tenant, for good; its connections are closed, its data stays on the disk.
    ///
    /// # Errors
    /// No such tenant, one that cannot go, or the change could not be written down.
    pub fn remove_tenant(&self, name: &str) -> Result<(), RegistryError> {
        let tenant = self.tenants.remove(name, |settings, others| {
            if settings.admin {
                keep_an_operator(others)?;
            }
            Ok(())
        })?;
        self.dismiss(&tenant);
        self.seat();
        self.allot_memory();
        Ok(())
    }

    /// Brings the tenants in line with a configuration read anew.
    pub fn reload(&self, specs: &[TenantSpec]) {
        for spec in specs {
            if let Err(why) = self.enroll(spec) {
                tracing::error!(tenant = spec.name, "partitions: {why}");
            }
        }
        for gone in self.tenants.reload(specs) {
            self.dismiss(&gone);
        }
        for tenant in self.tenants.list() {
            self.take_over(&tenant);
        }
        self.seat();
        self.promise_the_device();
        self.allot_memory();
        self.counters
            .reloads
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// Changes when a tenant's writes count as done, until the configuration is read anew. Does not
    /// wait.
    pub fn set_durability(&self, tenant: &Tenant, durability: Durability) {
        tenant.set_durability(durability);
        if let Some(keyspace) = tenant.keyspace() {
            keyspace.set_sync(durability);
        }
    }

    /// The cores and the open database take over a tenant's settings.
    fn take_over(&self, tenant: &Arc<Tenant>) {
        if let Some(keyspace) = tenant.keyspace() {
            keyspace.set_sync(tenant.settings().durability);
        }
        self.house.enter(tenant.id, tenant.claim());
        // Its database may be open since before it was removed and came back.
        let _ = self.device_hook(tenant);
        self.tell_all(|| News::Configure(Arc::clone(tenant)));
    }

    fn dismiss(&self, tenant: &Arc<Tenant>) {
        // The database is closed when it has been idle; what it holds in memory others may use.
        if let Some(keyspace) = tenant.keyspace() {
            keyspace.set_allotments(engine::Allotments::default());
        }
        if let Some(device) = self.options.disk.stage() {
            device.remove(self.options.disk.number(&tenant.name));
        }
        self.house.remove(tenant.id);
        // Before a tenant of the same name can be added: it is to start from zero.
        self.metrics.remove(&tenant.name);
        self.tell_all(|| News::Forget(Arc::clone(tenant)));
    }

    /// What tenants are entitled to of the memories that they share, as they are now.
    pub fn allotments(&self) -> Allotments {
        Allotments::new(self.options.memory_budgets(), &self.tenants.totals())
    }

    pub(crate) fn allot_memory(&self) {
        let weights = self.tenants.totals().weight;
        for tenant in self.tenants.list() {
            let settings = tenant.settings();
            let part = settings.weight / weights;
            tenant.budget.allot(part, settings.request_bytes);
        }
        let allotments = self.allotments();
        for tenant in self
            .tenants
            .list_where(|tenant| tenant.keyspace().is_some())
        {
            if let Some(keyspace) = tenant.keyspace() {
                keyspace.set_allotments(allotments.of(&tenant.settings()));
            }
        }
    }

    /// Refuses promises that the server could not keep together with those it has made.
    fn feasible(&self, settings: &Settings, others: &Totals) -> Result<(), RegistryError> {
        let options = &self.options;
        let each = options.capacity.requests_per_s * options.cores as u64;
        // Other fronts must be as this one is.
        let fronts = self.upstream.as_ref().map_or(1, |it| it.fronts() as usize);
        let room = Room {
            cores: options.cores,
            fronts,
            requests_per_s: (each * fronts as u64) as f64,
            handlers: (self.upstream.is_none()).then_some(options.engine.handlers as u64),
            memories: options.memory_budgets(),
        };
        // What others ask too much of is not this tenant's to answer for.
        let unkept = others.with(settings).unkept(&room).into_iter();
        let own = unkept.filter(|problem| settings.asks(problem.key));
        let problem = settings.beyond_its_own().into_iter().chain(own).next();
        let problem = problem.map(|problem| problem.to_string());
        let wrong = |doubt: &Doubt| doubt.severity == Severity::Error;
        let contradiction = || settings.doubts().into_iter().find(wrong);
        match problem.or_else(|| Some(contradiction()?.to_string())) {
            Some(problem) => Err(RegistryError::Infeasible(problem)),
            None => Ok(()),
        }
    }
}

/// Run-time changes win over the configuration file, so without an operator nobody could undo them.
fn keep_an_operator(others: &Totals) -> Result<(), RegistryError> {
    if others.operators > 0 {
        return Ok(());
    }
    Err(RegistryError::Infeasible(
        "nobody could administer the server any more; let another tenant first".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(
        shared: &Shared,
        name: &str,
        edit: impl FnOnce(&mut Settings),
    ) -> Result<(), RegistryError> {
        shared.change_tenant(name, |spec| {
            edit(&mut spec.settings);
            Ok(())
        })
    }

    #[test]
    fn the_last_operator_stays() {
        let directory = tempfile::tempdir().unwrap();
        let shared = crate::shared::tests::shared(directory.path(), &["web"]);
        let make = |name: &str, admin| change(&shared, name, |settings| settings.admin = admin);
        make("web", true).unwrap();
        assert!(make("web", false).is_err());
        assert!(shared.remove_tenant("web").is_err());
        make("boss", true).unwrap();
        make("web", false).unwrap();
        assert!(shared.remove_tenant("boss").is_err());
        shared.remove_tenant("web").unwrap();
        shared.engine.shutdown();
    }

    #[test]
    fn changes_last_and_impossible_ones_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let shared = crate::shared::tests::shared(directory.path(), &["web"]);
        let change = |edit: fn(&mut Settings)| change(&shared, "new", edit);
        change(|settings| settings.weight = 4.0).unwrap();
        assert_eq!(shared.tenants.totals().weight, 5.0);
        let too_much = change(|settings| settings.cache_bytes = Some(1 << 40));
        assert!(matches!(too_much, Err(RegistryError::Infeasible(_))));
        let too_much = change(|settings| settings.write_buffer_bytes = Some(513 << 20));
        assert_eq!(
            too_much.expect_err("refused").to_string(),
            "write_buffers allotments of all tenants come to 513MiB, but engine.write_buffers is 512MiB; allot less, or raise \
             engine.write_buffers"
        );
        let beyond = change(|settings| {
            settings.contract_per_s = Some(100.0);
            settings.reserve_get_per_s = Some(200.0);
        });
        assert_eq!(
            beyond.expect_err("refused").to_string(),
            "its reservations come to 200/s, but beyond contract = 100/s no promise holds; raise the contract or promise less"
        );
        let permits = change(|settings| settings.reserved_permits = 16);
        assert!(matches!(permits, Err(RegistryError::Infeasible(_))));
        assert_eq!(
            shared
                .tenants
                .get("new")
                .unwrap()
                .settings()
                .reserved_permits,
            0
        );
        shared.remove_tenant("web").unwrap();
        shared.reload(&[TenantSpec::new("web")]);
        let names: Vec<String> = shared
            .tenants
            .list()
            .iter()
            .map(|tenant| tenant.name.clone())
            .collect();
        assert_eq!(
            names,
            ["new"],
            "run-time changes win over the configuration"
        );
        shared.engine.shutdown();
    }
}
