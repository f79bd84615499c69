//! docs/reference/simulator.md, written from the language.

use super::schema::LANGUAGE;
use settings::reference::sections;

const HEAD: &str = r#"# The simulator

`entremet sim SCENARIO.toml [--seed N] [--out DIR]` plays a [scenario](scenario.md) against a simulated cluster: senders that split
and tag multigets and choose replicas, a network, nodes whose stage is the one that ships (`policy::dispatch`), servers, faults.
It prints a table and writes `DIR/result.json` and `DIR/report.html`. The same seed gives the same file, to the byte, on every machine. This page is
written from the code by `UPDATE_DOCS=1 cargo test --release -p entremet-sim --test scenario`; a test compares the two.

```toml
duration = "20s"
warm_up = "2s"

[cluster]
nodes = 16
replicas = 3
permits = 2                       # operations that a node serves at a time
operation = "200us"

[[fault]]
node = 3
at = "8s"                         # from the end of the warm-up
length = "5s"
slow = 5.0

[[tenant]]
name = "web"
  [[tenant.load]]
  rate = "40k/s"
  mix = { get = 0.9, multiget = 0.1 }
```

## What is simulated, and what is not

* Keys, popularity, sizes, phases, weights, reservations, limits and contracts are those of the scenario. `connections` times `depth`
  of a closed loop are as many clients with one request outstanding each.
* Each node keeps a tenant's reservation, limit and contract whole, as a server does: four nodes let four times the limit through.
  With `weights = "exchange"` or `"served"` these rates are those of the whole cluster. From the controller's first step on, each node
  has a part of them, as of the tenant's share.
* `get`, `put`, `multiget` and `range` only; a `range` is in a load of its own, and is one read of all its values in pieces of 256 KiB
  at most, as a server reads ahead; a `put` goes to a partition's first replica, and copying it to the others costs nothing; `poisson` and
  `constant` arrivals and closed loops only; no traces, no spikes. A scenario that asks for more is refused, with everything that it
  asks for.
* An operation takes a time drawn around its mean, and what it needs of `bandwidth_in`, `requests` and `bandwidth_out`, one after
  the other, each first come, first served. What a limit refuses has failed, as `THROTTLED`; it has used bytes in and a request all the
  same, and no processor. A sender that sends an operation twice (`again`) takes the copy that was served.
* `placement`, `weights`, `replica = "windows"` and `scheduler = "fair"` are the four mechanisms of Pisces
  ([theory](../theory/placement.md)); each can be played without the others. The controller has only what nodes measured: it
  knows no popularity, no rate and no load of the scenario.
* Where nothing is said, a cluster is kinder than a real one: messages take the same time each, clocks agree, senders take no time, nodes see at once
  what comes, machines never pause, all know at once that a node is dead, the controller sees all counters at one moment and is obeyed at once, partitions
  move at once, and probes cost nothing. `jitter`, `skew`, `reply`, `look`, `[[pause]]`, `notice`, `late`, `copy` and `probe_work` take that away, each by itself.
* A client of a closed loop has one sender for good; requests of open loops go through all senders in turn. Each sender has its own windows,
  and knows nothing of the others.
* Operations of one multiget at one node are served one by one. A node's processors, bytes and requests are all that is short there; the network between
  machines has no bandwidth.
* With `device`, an operation that its node has served waits for a handler, and the handler for a modelled disk; a stage stands before each. `handlers`
  says how many there are, and `reserved_permits` are kept free of them, as on a server. I/Os are of the value's size, 4 KiB at least, or pieces of a
  `chunk`; reads are anywhere in the `span`, writes one after the other. `control` keeps promises as a server's controller does. `file`,
  `other_files`, `range_reads`, `wake` and `piece` are what a server has besides. There are no syncs,
  flushes or compactions, and nobody chooses what is in memory. Reservations are priced for the device once a second, by what requests have cost, unless
  a controller of promises reserves there. A pause does not stop the disk.
* A scenario for a server over emulated disks (`server.device.model`) needs no second one for the simulator: what `cluster` does not say of
  `device`, `disks`, `span`, `handlers`, `control`, `scheduler` and `device_scheduler` is taken from `[server]`, as far as that says it.
* A node that is paused loses nothing: what was sent there waits. One that is dead loses what waits there, senders send it again
  elsewhere, and partitions without another replica wait until they are placed anew or the node is back.
* Nothing is sent after the end. Replies are waited for as long as `drain` says, and their latencies count; a request without one has failed, as
  `unanswered`.

## What was held against a real server

The experiment `simulator-cross-check` plays one simulated node beside one real server, with gets of one size, and is told how fast that server was. So the
queue of a node is held against a real one: shares, rates and latencies where requests wait. `promises-cross-check` does so with promises on
four emulated disks: with `auto` and equal shares as many windows are kept, and p99 is within 20 % at five points of seven; Cake differs. Networks, senders, windows, the controller, moves, deaths
and multigets are held against nothing but arithmetic (the simulator's tests): no cluster of real nodes was measured.

## What it takes

On one of two shared cores 4.5 to 5.0 million events a second: 128 nodes of eight permits at three quarters of their load, gets and multigets of 20 keys, with each order
(`cargo run --release -p entremet-sim --example events`).

10,000 tenants on 1,000 nodes, each on 24 of them, with all four mechanisms and 16 senders, took 1.3 GiB at 800,000 requests a second. Memory follows tenants
(most of it is a tenant's histogram of latencies, about 80 kB), tenants at nodes, and with `replica = "windows"` senders times tenants times the nodes of
each: with a sender for each of the 1,000 nodes (`senders` where nothing is said) it was 2.9 GiB after three seconds and growing. A tenant that is on all 1,000 nodes (`partitions`
where nothing is said) takes forty times as much for that as one on 24; 10,000 of these do not fit in 4 GiB.
"#;

/// The text of the page.
#[must_use]
pub fn reference() -> String {
    format!("{HEAD}{}", sections(&LANGUAGE, 2, false, None))
}
