//! Whether a promise fits beside those that are made: `policy::slo::admission`, asked with what is
//! known of the disk and of what requests ask of it.

use std::sync::Arc;

use policy::cost::device::Op;
use policy::slo::admission::{
    admit, stand, takes, Answer, Asked, Capacity, Demand, Drives, Lack, Remedy, Standing, Work,
};
use policy::slo::control::AutoOptions;
use policy::Durability;
use settings::tenant::{Settings, Slo, SloClass};

use super::Shared;
use crate::device::Device;
use crate::tenants::Tenant;

/// The smallest read that is priced: a block of RocksDB.
const READ_BYTES: u64 = 4 << 10;

/// A promise, whose it is, and what was reckoned for it.
#[derive(Clone, Debug)]
pub struct Party {
    /// Whose.
    pub tenant: String,
    /// What.
    pub slo: Slo,
    /// What its requests ask for.
    pub asked: Asked,
    /// Whether such requests were seen; else they are taken to be small reads from the disk.
    pub seen: bool,
}

impl Party {
    /// Whether the promise says of how many requests it is.
    pub fn bounded(&self) -> bool {
        let slo = &self.slo;
        slo.contract_per_s.or(slo.throughput_per_s).is_some()
    }
}

/// What would come of a promise.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The others, and last the new one.
    pub parties: Vec<Party>,
    /// The answer, with places in `parties`.
    pub answer: Answer,
}

impl Shared {
    /// What would come of a tenant's promise beside all others; it takes the place of one for the
    /// same requests. `None`: there is no stage before the disk, so nothing is known of it.
    pub fn admit(&self, tenant: &Tenant, slo: &Slo) -> Option<Admitted> {
        let device = self.options.disk.stage()?;
        let capacity = self.capacity(device);
        let mut parties = self.parties(&capacity, device);
        parties.retain(|party| {
            party.tenant != tenant.name || !party.slo.is_of(slo.workload.as_deref(), slo.class)
        });
        let present: Vec<Asked> = parties.iter().map(|party| party.asked).collect();
        let new = self.party(&capacity, device, tenant, &tenant.settings(), slo);
        let answer = admit(&capacity, &present, &new.asked);
        parties.push(new);
        Some(Admitted { parties, answer })
    }

    /// Whether the promises that are made fit together. `None`: as [`Shared::admit`].
    pub fn standing(&self) -> Option<(Vec<Party>, Standing)> {
        let device = self.options.disk.stage()?;
        let capacity = self.capacity(device);
        let parties = self.parties(&capacity, device);
        let asked: Vec<Asked> = parties.iter().map(|party| party.asked).collect();
        let standing = stand(&capacity, &asked);
        Some((parties, standing))
    }

    /// With what the promise in that place would fit.
    pub fn takes(&self, parties: &[Party], place: usize) -> Vec<Remedy> {
        let Some(device) = self.options.disk.stage() else {
            return Vec::new();
        };
        let asked: Vec<Asked> = parties.iter().map(|party| party.asked).collect();
        takes(&self.capacity(device), &asked, place, &[])
    }

    /// Why a promise would not fit if there were no other.
    pub fn lack_alone(&self, party: &Party) -> Option<Lack> {
        let device = self.options.disk.stage()?;
        stand(&self.capacity(device), &[party.asked]).lacks[0]
    }

    /// Everything that was promised.
    fn parties(&self, capacity: &Capacity, device: &Device) -> Vec<Party> {
        let of = |tenant: &Arc<Tenant>| {
            let settings = tenant.settings();
            let party = |slo: &Slo| self.party(capacity, device, tenant, &settings, slo);
            settings.slos.iter().map(party).collect::<Vec<_>>()
        };
        self.tenants.list().iter().flat_map(of).collect()
    }

    fn capacity(&self, device: &Device) -> Capacity {
        let (options, drives) = (device.options(), device.drives() as u32);
        let per_drive = device
            .state()
            .capacity_per_s
            .max(options.supply.sweep.floor_per_s())
            / f64::from(drives);
        let vops = options.costs.cost(Op::Read, READ_BYTES).get();
        Capacity {
            drives: Drives {
                count: drives,
                seeks: options.seeks,
                alone_ns: options.read_alone_ns,
                together_ns: vops * 1e9 / per_drive.max(1.0),
                depth: options.depth,
                stream_bytes_per_s: options.stream_bytes_per_s,
            },
            handlers: self.options.engine.handlers as u32,
            requests_per_s: (self.options.capacity.requests_per_s * self.options.cores as u64)
                as f64,
            floor: AutoOptions::default().floor,
        }
    }

    fn party(
        &self,
        capacity: &Capacity,
        device: &Device,
        tenant: &Tenant,
        settings: &Settings,
        slo: &Slo,
    ) -> Party {
        let recent = self.demands.read().of(tenant.id, slo.class);
        let (objective, small_ns) = (slo.objective(), capacity.drives.together_ns);
        // A price as time of one drive, by what a small read costs and takes there.
        let small_vops = device.options().costs.cost(Op::Read, READ_BYTES).get();
        let work = |ios: f64, vops: f64| Work {
            ios,
            moved_ns: ((vops / small_vops - ios) * small_ns).max(0.0),
        };
        let (missing, work) = match recent.at_disk() {
            Some((missing, ios, vops)) => (missing, work(ios, vops)),
            None => (1.0, work(1.0, small_vops)),
        };
        // Its reply waits for a sync, which takes a small I/O's time.
        let syncs = settings.durability == Durability::Always && slo.class == SloClass::Put;
        let (missing, work) = match syncs {
            true => (
                1.0,
                Work {
                    ios: work.ios * missing + 1.0,
                    ..work
                },
            ),
            false => (missing, work),
        };
        let planned = objective.contract_per_s.or(objective.throughput_per_s);
        Party {
            tenant: tenant.name.clone(),
            slo: slo.clone(),
            asked: Asked {
                objective,
                demand: Demand {
                    per_s: planned.unwrap_or_else(|| recent.per_s()),
                    missing,
                    work,
                },
            },
            seen: recent.at_disk().is_some(),
        }
    }
}
