//! What the requests of each promise took of the device.

use std::collections::BTreeMap;

use policy::{Nanos, PrincipalId};
use stage::LaneId;
use telemetry::{Class, CLASSES};

use super::steer::Promise;
use crate::device::Device;
use crate::shared::Shared;
use crate::slo::classes;

/// What lanes and classes were charged, as it was read last.
#[derive(Default)]
pub struct Charged {
    lanes: BTreeMap<(PrincipalId, usize), Nanos>,
    classes: BTreeMap<PrincipalId, [f64; CLASSES]>,
}

impl Charged {
    /// Of each promise, the time of one drive that its requests were charged since this was asked
    /// last, over the drives, ns. A lane is charged as a whole: each of its promises has the part
    /// of its classes.
    pub fn see(&mut self, shared: &Shared, device: &Device, promises: &[Promise]) -> Vec<f64> {
        let mut lanes: BTreeMap<_, (f64, Vec<usize>)> = BTreeMap::new();
        for (number, promise) in promises.iter().enumerate() {
            let place = (promise.tenant.id, promise.lane);
            let (_, own) = lanes.entry(place).or_insert_with(|| {
                let disk = shared.options.disk.number(&promise.tenant.name);
                let lane = LaneId(u8::try_from(promise.lane).unwrap_or_default());
                let now = device.charged_ns(disk, lane);
                let before = self.lanes.insert(place, now).unwrap_or(now);
                (now.saturating_sub(before) as f64, Vec::new())
            });
            own.push(number);
        }
        let mut used = BTreeMap::new();
        let mut charged = vec![0.0; promises.len()];
        for ((tenant, _), (lane_ns, own)) in &lanes {
            let name = &promises[own[0]].tenant.name;
            let used = used.entry(*tenant).or_insert_with(|| {
                let now = device.used(shared.options.disk.number(name));
                let now = now.unwrap_or_default().class_vops();
                let before = self.classes.insert(*tenant, now).unwrap_or(now);
                std::array::from_fn::<_, CLASSES, _>(|class| now[class] - before[class])
            });
            let of = own
                .iter()
                .map(|number| classes(promises[*number].meter.slo().class));
            let parts = parts(&of.collect::<Vec<_>>(), used);
            for (number, part) in own.iter().zip(parts) {
                charged[*number] = lane_ns * part / device.drives() as f64;
            }
        }
        charged
    }
}

/// Of what a lane was charged, the part that is for each of these groups of classes. A class may be
/// in several.
fn parts(groups: &[&[Class]], used: &[f64; CLASSES]) -> Vec<f64> {
    let among = |class: &Class| groups.iter().any(|group| group.contains(class));
    let sum = |classes: &mut dyn Iterator<Item = Class>| -> f64 {
        classes.map(|class| used[class.index()].max(0.0)).sum()
    };
    let all = sum(&mut Class::ALL.into_iter().filter(among));
    let part = |group: &&[Class]| match all > 0.0 {
        true => sum(&mut group.iter().copied()) / all,
        false => 0.0,
    };
    groups.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_promise_of_a_lane_is_charged_for_its_classes() {
        let mut used = [0.0; CLASSES];
        (used[Class::Get.index()], used[Class::Scan.index()]) = (1.0, 3.0);
        let (get, scan): (&[_], &[_]) = (&[Class::Get], &[Class::Scan]);
        let any: &[_] = &[Class::Get, Class::Put, Class::Multiget, Class::Scan];
        assert_eq!(parts(&[get, scan], &used), [0.25, 0.75]);
        assert_eq!(parts(&[get, any], &used), [0.25, 1.0]);
        assert_eq!(parts(&[get], &used), [1.0], "all that is promised there");
        assert_eq!(parts(&[get], &[0.0; CLASSES]), [0.0]);
    }
}
