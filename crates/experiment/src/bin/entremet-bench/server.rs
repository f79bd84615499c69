//! How the rows of a bench want their servers: one configuration, few differences.

use std::path::{Path, PathBuf};

use experiment::server::{pin, Launch};
use experiment::spec::merge::lay_over;
use experiment::ExperimentError;
use toml::{Table, Value};
use workload::client::Identity;

pub use experiment::server::{pinned, Server, REDIS};

use crate::Setup;

/// A tenant as configured: name and weight.
pub type Tenant = (String, u32);

/// How an Entremet is to be started.
pub struct Entremet {
    /// Its name in messages.
    pub label: &'static str,
    /// `[scheduler] request`.
    pub request: &'static str,
    /// The cores that it may use; one data path thread on each.
    pub cores: Vec<usize>,
    /// Tenants. They have no passwords, so that logging in costs nothing (any password will do).
    pub tenants: Vec<Tenant>,
    /// Object cache of each tenant, MiB, so that data stay in memory as the claims say; 0 leaves
    /// the server's defaults.
    pub cache_mib: u64,
}

impl Entremet {
    /// Starts it; what `--set` says is laid over the configuration.
    pub fn start(&self, setup: &Setup) -> Result<Server, ExperimentError> {
        self.start_with(setup, &Table::new(), None)
    }

    /// The same with more configuration, and with a copy of what a server that has ended left at
    /// `data`.
    pub fn start_with(
        &self,
        setup: &Setup,
        more: &Table,
        data: Option<&Path>,
    ) -> Result<Server, ExperimentError> {
        let config = self.config(setup, more);
        Server::entremet(&Launch {
            label: self.label,
            binary: Path::new(&setup.binary),
            cores: &self.cores,
            config: &config,
            data,
        })
    }

    /// What [`Entremet::start_with`] configures it with.
    pub fn config(&self, setup: &Setup, more: &Table) -> Table {
        let mut config = self.plain();
        lay_over(&mut config, more);
        lay_over(&mut config, &setup.set);
        config
    }

    fn plain(&self) -> Table {
        let mut config = Table::new();
        let scheduler = Table::from_iter([("request".to_string(), self.request.into())]);
        config.insert("scheduler".into(), Value::Table(scheduler));
        let server = Table::from_iter([
            ("max_connections".to_string(), 16_000.into()),
            // All clients come from one address here, and as fast as they can.
            ("connection_rate".to_string(), "1M/s".into()),
        ]);
        config.insert("server".into(), Value::Table(server));
        if self.cache_mib > 0 {
            let whole_mib = self.cache_mib * self.tenants.len() as u64;
            let whole = format!("{whole_mib}MiB").into();
            let engine = Table::from_iter([("object_cache".to_string(), whole)]);
            config.insert("engine".into(), Value::Table(engine));
        }
        let tenants = self.tenants.iter().map(|(name, weight)| {
            let mut tenant = Table::new();
            tenant.insert("name".into(), name.as_str().into());
            tenant.insert("weight".into(), i64::from(*weight).into());
            if self.cache_mib > 0 {
                tenant.insert("cache".into(), format!("{}MiB", self.cache_mib).into());
            }
            Value::Table(tenant)
        });
        config.insert("tenant".into(), Value::Array(tenants.collect()));
        config
    }
}

/// The identity of a configured tenant.
pub fn identity(tenant: &str) -> Identity {
    Identity {
        credentials: Some((tenant.into(), "none".into())),
        tag: "bench".into(),
        ..Identity::default()
    }
}

/// Moves this process (and the threads that it makes later) to some cores.
pub fn pin_client(cores: &[usize]) {
    if let Err(error) = pin::to(cores) {
        println!("NOTE: the client is not on cores {cores:?}: {error}");
    }
}

/// Where a program is that need not be on this machine.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|program| program.exists())
}
