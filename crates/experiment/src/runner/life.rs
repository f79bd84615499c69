//! One server's life: it starts, is loaded, and ends.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use toml::Table;
use workload::WorkloadError;

use super::make::Asked;
use super::moves::Moves;
use super::Runner;
use crate::error::ExperimentError;
use crate::examples::{self, QUEUE_STORE};
use crate::measure::figure::Figure;
use crate::nodes::{self, Nodes};
use crate::observed::{Observed, ServerUse};
use crate::server::watch::Watch;
use crate::server::{config, Launch, Server, REDIS};
use crate::spec::merge::lay_over;
use crate::way::{self, Rival, Way};

impl Runner<'_> {
    /// Whether something is asked that the load does not know. Only then is the server asked, which
    /// takes the load's processor a little.
    pub(super) fn looks(&self) -> bool {
        let asked = |figure| self.experiment.asks_for(figure);
        Figure::OF_SERVERS.into_iter().any(asked)
    }

    /// Plays a scenario on a server of its own.
    pub(super) fn serve(
        &self,
        scenario: &Table,
        asked: &Asked,
    ) -> Result<Observed, ExperimentError> {
        match Way::of(scenario) {
            Way::Rival(rival) => self.by_a_rival(rival, scenario, asked.label),
            Way::Nodes => self.by_nodes(scenario, asked.label),
            _ => self.by_entremet(scenario, asked),
        }
    }

    /// On a server that is not ours. A redis-server has no tenants: they are its users, with keys
    /// of their own.
    fn by_a_rival(
        &self,
        rival: Rival,
        scenario: &Table,
        label: &str,
    ) -> Result<Observed, ExperimentError> {
        let cores = &self.pinned.server;
        let tenants = config::tenants(scenario).into_iter();
        let users: Vec<String> = tenants.map(|(name, ..)| name).collect();
        let mut server = match rival {
            Rival::Redis => {
                let core = cores.first().copied().unwrap_or_default();
                Server::redis(Path::new(REDIS), core, &users)?
            }
            Rival::LockedStore => self.queue_store("locked")?,
            Rival::OwnedStore => self.queue_store("owned")?,
        };
        let (played, stop) = (way::without_server(scenario), self.setup.stop);
        let played = (self.setup.player).play(&played, server.address.into(), stop, &mut |_| {});
        self.observed(&mut server, played, label)
    }

    fn queue_store(&self, design: &str) -> Result<Server, ExperimentError> {
        let binary = examples::built(self.setup.binary, QUEUE_STORE);
        let binary = binary.map_err(ExperimentError::Usage)?;
        Server::queue_store(&binary, design, &self.pinned.server)
    }

    /// On nodes of a cluster.
    fn by_nodes(&self, scenario: &Table, label: &str) -> Result<Observed, ExperimentError> {
        let nodes = Nodes::of(scenario).map_err(ExperimentError::Usage)?;
        let mut server = Server::nodes(
            &Launch {
                label,
                binary: self.setup.binary,
                // Engines that have a part of a processor cannot be held to some.
                cores: self.setup.processors,
                config: &config::of_scenario(scenario),
                data: None,
            },
            &nodes,
        )?;
        let goal = nodes.goal(&server.log());
        let goal = goal.ok_or_else(|| server.failed("no front says where it is".into()))?;
        let played = way::without_server(&nodes::without(scenario));
        let mut moves = Moves::new(self.setup.binary, self.setup.processors, &server, &nodes);
        let at = &mut |at_s: f64| moves.look(at_s);
        let played = (self.setup.player).play(&played, goal, self.setup.stop, at);
        moves.wait();
        if let Some(why) = moves.failed {
            return Err(server.failed(format!("a partition was not moved: {why}")));
        }
        let mut observed = self.observed(&mut server, played, label)?;
        let moves = server.said("moves ") as f64 + f64::from(moves.done);
        observed.figures.insert("moves".into(), moves);
        Ok(observed)
    }

    fn by_entremet(&self, scenario: &Table, run: &Asked) -> Result<Observed, ExperimentError> {
        let label = run.label;
        let mut scenario = scenario.clone();
        let data = self.stored(&mut scenario)?;
        let config = config::of_scenario(&scenario);
        let mut server = Server::entremet(&Launch {
            label,
            binary: self.setup.binary,
            cores: &self.pinned.server,
            config: &config,
            data: data.as_deref(),
        })?;
        let watched = config.contains_key("device") || self.looks();
        let watch = server.admin.filter(|_| watched).map(Watch::begin);
        let mut measuring = false;
        let mut changed = scenario.clone();
        let changes = self.experiment.changes_of(&run.variant.name);
        let (mut to_come, mut refused) = (changes.peekable(), None);
        let at = &mut |at_s: f64| {
            if at_s >= 0.0 && !std::mem::replace(&mut measuring, true) {
                watch.iter().for_each(Watch::measure);
            }
            while let Some(change) = to_come.next_if(|change| change.at_s <= at_s) {
                lay_over(&mut changed, &change.scenario);
                refused = server.reconfigure(&config::of_scenario(&changed)).err();
            }
        };
        let goal = server.address.into();
        let played = (self.setup.player).play(&scenario, goal, self.setup.stop, at);
        if let Some(error) = refused {
            return Err(error);
        }
        let mut observed = self.observed(&mut server, played, label)?;
        if let Some(watch) = watch {
            let measured = Duration::try_from_secs_f64(observed.elapsed_s).unwrap_or_default();
            let seen = watch.end(measured);
            observed.figures.extend(seen.figures);
            for tenant in &mut observed.tenants {
                let name = &tenant.load.name;
                tenant.cpu_per_s = seen.cpu_per_s.get(name).copied();
                tenant.windows = seen.windows.get(name).cloned().unwrap_or_default();
                tenant.server_ms = seen.latencies.get(name).cloned().unwrap_or_default();
            }
        }
        Ok(observed)
    }

    /// What a run observed, if the server came through it, with what the server used.
    pub(super) fn observed(
        &self,
        server: &mut Server,
        played: Result<Observed, WorkloadError>,
        label: &str,
    ) -> Result<Observed, ExperimentError> {
        if self.setup.stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::Interrupted);
        }
        let ended = match played {
            Ok(_) => server.ended(),
            Err(_) => server.ended_soon(),
        };
        if let Some(status) = ended {
            let what = format!("the server ended during the load ({status})");
            return Err(server.failed(what));
        }
        let mut observed = played.map_err(|source| ExperimentError::Load {
            label: label.into(),
            source,
        })?;
        observed.server = ServerUse {
            cpu_s: server.cpu_s(),
            resident_bytes: server.resident_bytes(),
        };
        Ok(observed)
    }
}
