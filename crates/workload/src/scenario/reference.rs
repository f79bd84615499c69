//! docs/reference/scenario.md, written from the language.

use std::fmt::Write;

use settings::reference::{sections, UNITS};

use super::misbehave;
use super::schema::LANGUAGE;

const HEAD: &str = r#"# Scenarios

A scenario says who asks what of a server, when, and what changes on the way. `entremet load SCENARIO.toml` plays it;
experiments are built on it. This page is written from the code by
`UPDATE_DOCS=1 cargo test --release -p entremet-workload --lib scenario`; a test compares the two.

`entremet load SCENARIO.toml --check` finds everything that is wrong, with line and column, and says the rest back in words.
Unknown keys are errors, and so is a key that cannot take effect beside the others. Examples to start from are in
[`scenarios/`](../../scenarios).

```toml
name = "half-at-twice"
duration = "20s"
warm_up = "3s"

[[tenant]]
name = "web"                      # web-1 … web-4
count = 4
weight = 10

  [[tenant.load]]
  arrivals = "poisson"
  rate = "2000/s"
  mix = { get = 0.9, put = 0.1 }
  keys = { count = 100_000 }
  popularity = { kind = "zipf", alpha = 0.99 }
  values = { kind = "log-normal", mean = "1KiB", sigma = 0.5 }

    [[tenant.load.phase]]         # from 10 s on
    at = "10s"
    rate = "4000/s"
```

## Time

Time 0 is the end of the warm-up, when measuring begins; `at`, `from`, `until` and the seconds of the results count from there. In the
warm-up every load behaves as at time 0, unless it has a `from`.

## Same seed, same requests

Each load draws from a generator of its own, fixed by the seed and the names of tenant and load, so that a tenant more or
less does not change what the others send. An open loop sends the same requests at the same times. A closed loop sends the same
requests in the same order; how far it gets depends on the server.

## Several servers

`--target` may name several, with commas between, such as the fronts of a cluster at their usual addresses. Connections go to them
in turn, and each is asked for any key.

## Clients that know of a cluster

`--cluster` says that the target is one front of a cluster ([guide](../guide/cluster.md)), or a node of a Redis Cluster. Each of
`connections` is then a client with a connection to every front that its tenant's map names (`CLUSTER SLOTS`). It sends each
request to the front that is the home of its key.

* A closed loop has `depth` requests out over all of its client's connections; when all are answered it draws the next ones.
  While a front that the map names is away, the client waits.
* In an open loop clients take turns; `outstanding` and `reconnect_after` count for each connection.
* `MOVED` is no failure: the request goes to where it says, with its old start time. What is sent on 16 times fails as `moved`.
  `ASK` and `TRYAGAIN` are failures.
* After `MOVED`, and when a connection is lost, the map is asked for anew.
* Only requests of one key have a home: `get`, `put`, `delete`, `increment`, `bitcount`. Loads that ask anything else, or
  misbehave on single connections (`handshake`, `read_rate`), are refused before the run.

## Real traces

They are read from `$ENTREMET_TRACES` (default `../shared/data`). Where one is absent, an equivalent is made from its published
statistics, and the output says so.

## Results

At the end there is a table on standard output, and with `--out DIR` a `DIR/result.json`: `name`, `seed`, `commit`, `machine`, `verdicts`
(none, for a load) and `figures`:

| key | what it is |
|---|---|
| `elapsed_s`, `warm_up_s` | how long was measured, and what ran before |
| `left` | requests that were neither answered nor failed at the end, of loads with `requests`; `null` where there are no such loads |
| `cut_short` | why the run ended before its time; `null` if it did not |
| `generator` | `busy` (share of a core), `cpu_s`, `lag_p99_ms` (how late open loops sent), `moved` (how often a front sent a request on to another one, with `--cluster`), `complaint` (why the figures are about the generator rather than the server; `null` if they are not) |
| `tenants` | one for each tenant and tag: `name`, `tag`, `weight`, `total`, `classes`, `errors`, `series` |
| `total`, and each of `classes` (with its `class`) | `offered_per_s`, `rate_per_s`, `completed`, `failed`, `late`, `missed`, `bytes_in_per_s`, `bytes_out_per_s`, `latency_ms` (`mean`, `p50`, `p90`, `p95`, `p99`, `p999`, `max`) |
| `errors` | by `kind` (the first word of the server's text; `connection-lost`, `unsent`, `unanswered`, `moved` are the client's): `count`, `example` |
| `series` | by the second: `t_s`, `offered_per_s`, `rate_per_s`, `failed_per_s`, `p50_ms`, `p95_ms`, `p99_ms` (`null` where nothing was answered) |

A request belongs to the measured time by when it was due (open loop) or sent (closed loop): `offered`, `completed`, `failed`, `missed` and
latency count those. Rates count what was answered in the measured time, whenever it was due; in overload the two differ. What a
load that misbehaves leaves behind unanswered when it goes counts as offered alone.
`--histograms` adds `DIR/latency.hlog`, the raw histograms in ns for the tools of HdrHistogram.

## Units

"#;

const TOP: &str = "The run as a whole.";

/// The text of the page.
pub fn reference() -> String {
    let mut text = format!("{HEAD}{UNITS}");
    text.push_str(&sections(&LANGUAGE, 2, false, Some(TOP)));
    text.push_str(
        "\n## Ways to misbehave\n\n`misbehave = \"NAME\"` stands for the settings below; whatever the same table says itself \
         holds instead. In a phase it holds until the next one.\n",
    );
    for way in misbehave::ALL {
        let (name, does, settings) = (way.name, way.does, way.settings);
        let _ = write!(
            text,
            "\n### `{name}`\n\nIt {does}.\n\n```toml\n{settings}\n```\n"
        );
    }
    text
}
