//! Cores tell each other what their principals consumed.
//!
//! Every core holds the full weights and rates and decides alone; at the end of a round (about
//! every millisecond) each takes its [`Dispatch::report`] and gives it to the others, which
//! [`Dispatch::absorb`] it: the same principals' service and tags move as if the consumption had
//! been granted there. So a tenant with connections on one core competes there with what the others
//! of that core had *everywhere*, and gets its share of the whole machine, up to what its one core
//! can give.
//!
//! This replaces the stealing of quanta of Pisces's DWRR (4.3.4): no shared counters, and a
//! principal's standing at a core is wrong by at most what the others did since the last exchange.

use super::options::Units;
use super::{Dispatch, LaneId};
use crate::cost::{Charge, Nanos, PrincipalId};

/// What one principal consumed at one core since that core's last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// Who.
    pub principal: PrincipalId,
    /// In which of its lanes. What no lane is known of is the rest's, and so are the rates below.
    pub lane: LaneId,
    /// What it was charged.
    pub charge: Charge,
    /// Requests served, if the principal has rates.
    pub requests: u64,
    /// Bytes moved, if the principal has rates.
    pub bytes: u64,
    /// Normalised requests of these that were in contract.
    pub in_contract: u64,
    /// Requests whose due times were kept to, in the lane's contract.
    pub timed: u64,
}

impl Consumed {
    /// Nothing yet.
    #[must_use]
    pub fn of(principal: PrincipalId) -> Self {
        Consumed {
            principal,
            lane: LaneId::REST,
            charge: Charge::ZERO,
            requests: 0,
            bytes: 0,
            in_contract: 0,
            timed: 0,
        }
    }
}

impl<T, const R: usize> Dispatch<T, R> {
    /// Appends to `report` what principals consumed since the last call, in no particular order but
    /// always the same one. The caller's vector, so that it need not be allocated every
    /// millisecond.
    pub fn report(&mut self, report: &mut Vec<Consumed>) {
        for index in self.unreported.drain(..) {
            let slot = &mut self.slots[index as usize];
            slot.unreported = false;
            let charge = slot.tally.charged.minus(slot.reported);
            slot.reported = slot.tally.charged;
            let (moved, in_contract) = match &mut slot.rates {
                Some(rates) => rates.take_moved(),
                None => (Units::default(), 0),
            };
            if !slot.configured {
                continue;
            }
            let mut rest = Consumed {
                principal: PrincipalId(index),
                lane: LaneId::REST,
                charge,
                requests: moved.requests,
                bytes: moved.bytes,
                in_contract,
                timed: 0,
            };
            let lanes = slot.lanes.iter_mut().flat_map(|lanes| lanes.take_moved());
            for (lane, charge, timed) in lanes {
                if lane == LaneId::REST {
                    rest.timed = timed;
                    continue;
                }
                rest.charge = rest.charge.minus(charge);
                report.push(Consumed {
                    lane,
                    charge,
                    timed,
                    ..Consumed::of(rest.principal)
                });
            }
            report.push(rest);
        }
    }

    /// Takes in what principals consumed at another core. Unknown principals are passed over. Debts
    /// are bounded (see [`super::DispatchOptions::debt_max_ns`]): a principal that is idle here
    /// does not collect one without end, and what it has collected decays with every round that
    /// passes here.
    pub fn absorb(&mut self, now: Nanos, remote: &[Consumed]) {
        let bounds = self.options.absorbed_bounds();
        for consumed in remote {
            if !self.is_configured(consumed.principal) {
                continue;
            }
            let index = consumed.principal.index();
            let slot = &mut self.slots[index];
            if let Some(lanes) = &mut slot.lanes {
                let used = (consumed.charge, consumed.timed);
                lanes.absorb(now, consumed.lane, used, &bounds);
            }
            if let Some(rates) = &mut slot.rates {
                let units = Units {
                    requests: consumed.requests,
                    bytes: consumed.bytes,
                };
                rates.absorb(now, units, consumed.in_contract);
            }
            // It was charged in full where it was consumed.
            self.debit(now, index, consumed.charge, &bounds);
        }
    }
}
