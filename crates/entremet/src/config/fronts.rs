//! `[server.cluster]`: several servers before one cluster, which clients see as the nodes of one.

use std::net::SocketAddr;

use front::{Both, Endpoint};
use server::FrontsOptions;
use settings::{Reader, Section};

use super::{url, Cluster, Config, Overrides, Server, Upstream};

/// The keys that say where clients connect, and those that say what they are told instead.
const LISTEN: Both<&str> = Both {
    plain: "listen",
    tls: "tls_listen",
};
const ANNOUNCE: Both<&str> = Both {
    plain: "announce",
    tls: "tls_announce",
};

/// What is said of it; none: nothing, or it is incomplete.
pub(super) fn read(section: &Section, overrides: &Overrides) -> Option<Cluster> {
    let given: Both<Option<SocketAddr>> = Both::each(|tls| section.get(LISTEN.of(tls)));
    let announce = Both::each(|tls| announced(section, ANNOUNCE.of(tls)));
    let node: Option<String> = section.get("node");
    let divide_weights = section.get_or_default("divide_weights");
    let node = overrides.node.clone().or(node);
    if let Some(why) = node.as_ref().and_then(|node| url::address(node).err()) {
        let what = format!("is no address of a node: {why}");
        section.error("node", &what, "write HOST:PORT");
    }
    let listen = Both {
        plain: overrides.cluster_listen.or(given.plain),
        ..given
    };
    if listen == Both::default() {
        nowhere(section, overrides);
        return None;
    }
    for tls in [false, true] {
        told_of(section, tls, *listen.of(tls));
    }
    told_apart(section, &listen, &announce);
    Some(Cluster {
        listen,
        options: FrontsOptions {
            announce,
            node,
            divide_weights,
        },
    })
}

fn announced(section: &Section, key: &str) -> Option<Endpoint> {
    let text: String = section.get(key)?;
    let place = Endpoint::read(&text);
    if place.is_none() {
        section.error(key, "is no address", "write HOST:PORT");
    }
    place
}

/// Cluster-aware clients have no address.
fn nowhere(section: &Section, overrides: &Overrides) {
    // One that is wrong is reported already.
    let given = LISTEN.all().into_iter().any(|key| section.gives(key));
    if section.present() && !given {
        let what = "is missing, and so is tls_listen: cluster-aware clients have no address";
        let advice = "add listen = \"HOST:PORT\", or tls_listen, or both";
        section.error("listen", what, advice);
    } else if !section.present() && overrides.node.is_some() {
        let what = "has no effect: this server is not one of several";
        section.error("node", what, "give --cluster-listen, too");
    }
}

/// Clients of this kind must be told an address, if they have one.
fn told_of(section: &Section, tls: bool, listen: Option<SocketAddr>) {
    let (key, announce) = (LISTEN.of(tls), ANNOUNCE.of(tls));
    match listen {
        Some(listen) if listen.ip().is_unspecified() && !section.gives(announce) => {
            let what = format!("{listen} is no address that clients could be told");
            let advice =
                format!("add {announce} = \"HOST:PORT\", or name an address of this machine");
            section.error(key, &what, &advice);
        }
        None if section.gives(announce) && !section.gives(key) => {
            let what = format!("has no effect: there is no {key}");
            section.error(announce, &what, &format!("add {key}, or leave it out"));
        }
        _ => {}
    }
}

/// Clients with TLS and those without cannot be told the same place.
fn told_apart(
    section: &Section,
    listen: &Both<Option<SocketAddr>>,
    announce: &Both<Option<Endpoint>>,
) {
    let Some(key) = ANNOUNCE.all().into_iter().find(|key| section.gives(key)) else {
        return;
    };
    let told = Both::each(|tls| {
        let bound = (*listen.of(tls))?;
        Some(announce.of(tls).clone().unwrap_or_else(|| bound.into()))
    });
    if let Some(place) = told.plain.filter(|plain| told.tls.as_ref() == Some(plain)) {
        let what = format!("clients with TLS and those without would both be told {place}");
        section.error(key, &what, "give each its own port");
    }
}

/// Where cluster-aware clients connect, after the key that says it.
pub(super) fn address(server: &Server, tls: bool) -> Option<(&'static str, SocketAddr)> {
    let key = match tls {
        true => "server.cluster.tls_listen",
        false => "server.cluster.listen",
    };
    let listen = &server.cluster.as_ref()?.listen;
    listen.of(tls).map(|address| (key, address))
}

/// What of the rest of the configuration contradicts that it is one of several fronts.
pub(super) fn check(config: &Config, reader: &Reader) {
    let server = &config.server;
    if server.cluster.is_none() {
        return;
    }
    let mut report = reader.report.borrow_mut();
    let cluster = |upstream: &Upstream| upstream.url.cluster;
    if !config.engine.upstream.as_ref().is_some_and(cluster) {
        let what = "has no effect: engine.kind is not \"redis-cluster\", and this server stands before no cluster";
        report
            .error(reader.place("server.cluster"), "server.cluster", what)
            .advice("set engine.kind = \"redis-cluster\", or leave it out");
    }
    if let Some((key, _)) = address(server, true).filter(|_| server.tls.is_none()) {
        let what = "needs a certificate: there is no [server.tls]";
        report
            .error(reader.place(key), key, what)
            .advice("add [server.tls] with cert and key; its listen may be []");
    }
}
