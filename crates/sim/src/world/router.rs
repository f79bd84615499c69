//! A sender.

use super::lanes::Lane;
use super::tuning::Tagging;
use super::Copied;
use crate::spec::{Selection, Spec};
use policy::generator::mix64;
use policy::multiget::Costs;
use policy::replica::{Rule, Selector};
use policy::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// Who splits, tags and sends requests, and what it knows.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) selector: Selector,
    pub(super) tagging: Tagging,
    /// Where it learns them.
    pub(super) costs: Option<Costs>,
    /// By tenant; none unless replicas are chosen by windows.
    pub(super) lanes: BTreeMap<u32, Lane>,
    /// Replies that came and were not read yet; the first one is being read.
    pub(super) unread: VecDeque<Copied>,
    /// It does nothing before this.
    pub(super) paused_until: Nanos,
}

impl Router {
    pub(super) fn new(spec: &Spec, number: u32) -> Self {
        let rule = match spec.routing.selection {
            Selection::Rule(rule) => rule,
            Selection::Oracle | Selection::Windows => Rule::LeastFinish,
        };
        let seed = mix64(spec.seed ^ u64::from(number));
        Router {
            selector: Selector::new(rule, spec.cluster.nodes, seed),
            tagging: Tagging::new(spec.scheduler.tuning, spec.scheduler.strategy),
            costs: spec.scheduler.cost.is_learnt().then(Costs::default),
            lanes: BTreeMap::new(),
            unread: VecDeque::new(),
            paused_until: 0,
        }
    }
}
