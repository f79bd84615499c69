//! Lottery scheduling (Frosting 2.2.2): "a lottery is held among all queues with pending requests,
//! biased based on the proportional share assigned to each queue". It ignores what requests cost.

use crate::generator::Generator;

/// The queues that take part, each with its tickets, in a Fenwick tree: adding, removing and
/// drawing cost O(log of the largest member).
#[derive(Clone, Debug, Default)]
pub(crate) struct Tickets {
    tree: Vec<u64>,
    held: Vec<u32>,
    total: u64,
}

impl Tickets {
    /// Gives `member` this many tickets instead of those it had; 0 takes it out.
    pub(crate) fn set(&mut self, member: usize, tickets: u32) {
        if member >= self.held.len() {
            self.grow(member + 1);
        }
        let had = std::mem::replace(&mut self.held[member], tickets);
        if had == tickets {
            return;
        }
        let change = u64::from(tickets).wrapping_sub(u64::from(had));
        self.total = self.total.wrapping_add(change);
        let mut at = member + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }

    /// Whether nobody has a ticket.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Draws one ticket and returns its holder.
    pub(crate) fn draw(&self, generator: &mut Generator) -> Option<usize> {
        if self.total == 0 {
            return None;
        }
        let mut ticket = generator.below(self.total);
        let mut at = 0;
        let mut step = (self.tree.len() - 1).next_power_of_two();
        while step > 0 {
            let next = at + step;
            if next < self.tree.len() && self.tree[next] <= ticket {
                ticket -= self.tree[next];
                at = next;
            }
            step /= 2;
        }
        Some(at)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        let held = self.held.iter().enumerate();
        held.filter(|(_, &tickets)| tickets > 0).map(|(m, _)| m)
    }

    pub(crate) fn clear(&mut self) {
        self.tree.fill(0);
        self.held.fill(0);
        self.total = 0;
    }

    /// Room for members below `count`, in powers of two so that growing is rare; rebuilds the sums.
    fn grow(&mut self, count: usize) {
        let size = count.next_power_of_two();
        self.held.resize(size, 0);
        self.tree = vec![0; size + 1];
        for member in 0..size {
            let at = member + 1;
            self.tree[at] += u64::from(self.held[member]);
            let above = at + (at & at.wrapping_neg());
            if above <= size {
                self.tree[above] += self.tree[at];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_tickets() {
        let mut tickets = Tickets::default();
        for (member, share) in [(0, 1), (3, 10), (700, 100), (5, 0)] {
            tickets.set(member, share);
        }
        tickets.set(9, 50);
        tickets.set(9, 0);
        let mut generator = Generator::new(7);
        let mut drawn = [0u32; 701];
        for _ in 0..111_000 {
            drawn[tickets.draw(&mut generator).unwrap()] += 1;
        }
        assert_eq!(drawn.iter().sum::<u32>(), drawn[0] + drawn[3] + drawn[700]);
        assert!((900..1100).contains(&drawn[0]), "{}", drawn[0]);
        assert!((9700..10_300).contains(&drawn[3]), "{}", drawn[3]);
    }

    #[test]
    fn nobody_to_draw() {
        let mut tickets = Tickets::default();
        assert_eq!(tickets.draw(&mut Generator::new(1)), None);
        tickets.set(4, 2);
        tickets.clear();
        assert_eq!(tickets.draw(&mut Generator::new(1)), None);
    }
}
