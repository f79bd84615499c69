//! The cluster behind this server: which node has what, and what takes its time.

use std::collections::{BTreeMap, HashSet};

use front::{row, Demand, Homes, Space, Topology};
use telemetry::{ClusterMove, ClusterNode, ClusterTenant, ClusterView, TenantAtNode};

use super::promise;
use crate::shared::Shared;
use crate::tenants::Tenant;
use crate::upstream::Upstream;

/// Tenants that are shown together.
const TENANTS_MAX: usize = 100;
const NS_PER_S: f64 = 1e9;

/// All of it, or what concerns one tenant. None: no cluster is behind this server.
pub fn view(shared: &Shared, only: Option<&str>) -> Option<ClusterView> {
    let upstream = shared.upstream.as_ref().filter(|it| it.options.cluster)?;
    let now = shared.options.clock.now();
    let unix_s = (shared.options.wall_ms)() / 1_000;
    let told = upstream.survey.look(now);
    let begun = upstream.moves.rows(now, || upstream.look_soon());
    let topology = upstream.found().topology;
    let took = told.as_deref().map(|told| Took::of(told, &topology));
    let listed = shared.tenants.list();
    let all = listed.iter().filter_map(|tenant| {
        let space = Space::in_parts(&tenant.name, upstream.parts(&tenant.name)?);
        Some((tenant, space))
    });
    let all: Vec<_> = all.collect();
    let mut tenants: Vec<_> = (all.iter())
        .filter(|(tenant, _)| only.is_none_or(|name| name == tenant.name))
        .map(|(tenant, space)| ClusterTenant {
            promises: promise::of_cluster(tenant, unix_s),
            ..one(tenant, space, &topology, took.as_ref())
        })
        .collect();
    tenants.sort_by(|one, other| busy(other).total_cmp(&busy(one)));
    let tenants_total = tenants.len() as u64;
    tenants.truncate(TENANTS_MAX);
    let spaces: Vec<_> = all
        .iter()
        .map(|(tenant, space)| (&*tenant.name, space))
        .collect();
    Some(ClusterView {
        nodes: nodes(upstream, &topology, &spaces, took.as_ref()),
        tenants,
        tenants_total,
        moves: moves(begun, &topology, &spaces),
    })
}

/// What tenants take of the time of nodes, for all fronts.
#[derive(Default)]
struct Took<'t> {
    /// By tenant and place of the node, of its time.
    parts: BTreeMap<(&'t str, usize), f64>,
    waits: HashSet<&'t str>,
}

impl<'t> Took<'t> {
    fn of(told: &'t [Demand], topology: &Topology) -> Self {
        let mut took = Self::default();
        for tenant in told.iter().flat_map(|demand| &demand.tenants) {
            if tenant.waits {
                took.waits.insert(&tenant.name);
            }
            for (slot, ns_per_s) in &tenant.slots {
                if let Some(place) = topology.place(*slot) {
                    let part = took.parts.entry((&tenant.name, place)).or_default();
                    *part += *ns_per_s as f64 / NS_PER_S;
                }
            }
        }
        took
    }

    fn of_node(&self, place: usize) -> f64 {
        let here = self.parts.iter().filter(|((_, at), _)| *at == place);
        here.map(|(_, part)| part).sum()
    }

    fn of_tenant(&self, name: &str, place: usize) -> f64 {
        self.parts.get(&(name, place)).copied().unwrap_or_default()
    }
}

/// What a tenant takes of all nodes.
fn busy(tenant: &ClusterTenant) -> f64 {
    tenant.nodes.iter().filter_map(|node| node.busy).sum()
}

fn one(
    tenant: &Tenant,
    space: &Space,
    topology: &Topology,
    took: Option<&Took<'_>>,
) -> ClusterTenant {
    let mut by_node: BTreeMap<usize, u16> = BTreeMap::new();
    for place in places(space, topology) {
        *by_node.entry(place).or_default() += 1;
    }
    let nodes = by_node.into_iter().map(|(place, partitions)| TenantAtNode {
        at: topology.nodes[place].clone(),
        partitions,
        busy: took.map(|took| took.of_tenant(&tenant.name, place)),
    });
    let weight = tenant.settings().weight;
    ClusterTenant {
        name: tenant.name.clone(),
        partitions: space.parts(),
        weight,
        weight_here: weight * tenant.portions().weight,
        waits: took.is_some_and(|took| took.waits.contains(&*tenant.name)),
        nodes: nodes.collect(),
        promises: Vec::new(),
    }
}

/// Where a tenant's partitions are.
fn places<'s>(space: &'s Space, topology: &'s Topology) -> impl Iterator<Item = usize> + 's {
    (0..space.parts()).filter_map(|part| topology.place(space.slot(part)))
}

fn nodes(
    upstream: &Upstream,
    topology: &Topology,
    spaces: &[(&str, &Space)],
    took: Option<&Took<'_>>,
) -> Vec<ClusterNode> {
    let mut partitions = vec![0; topology.nodes.len()];
    for (_, space) in spaces {
        places(space, topology).for_each(|place| partitions[place] += 1);
    }
    let homes = upstream.homes();
    let homes = homes.plain.or(homes.tls);
    let slots = topology.slots();
    let node = |(place, at): (usize, &String)| ClusterNode {
        at: at.clone(),
        slots: slots[place],
        partitions: partitions[place],
        fronts: (homes.iter()).flat_map(|homes| before(homes, at)).collect(),
        here: homes.as_ref().is_some_and(|homes| homes.mine(at)),
        busy: took.map(|took| took.of_node(place)),
    };
    topology.nodes.iter().enumerate().map(node).collect()
}

fn before<'h>(homes: &'h Homes, node: &'h str) -> impl Iterator<Item = String> + 'h {
    let fronts = homes.fronts().iter();
    let before = fronts.filter(move |front| front.node.as_deref() == Some(node));
    before.map(|front| front.at.to_string())
}

fn moves(begun: Vec<String>, topology: &Topology, spaces: &[(&str, &Space)]) -> Vec<ClusterMove> {
    let one = |text: String| {
        let slots = row(&text)?;
        let meets =
            |space: &Space| (0..space.parts()).any(|part| slots.contains(&space.slot(part)));
        let tenants = spaces.iter().filter(|(_, space)| meets(space));
        Some(ClusterMove {
            slots: text,
            tenants: tenants.map(|(name, _)| (*name).to_owned()).collect(),
            from: topology.owner(*slots.start()).map(str::to_owned),
        })
    };
    begun.into_iter().filter_map(one).collect()
}
