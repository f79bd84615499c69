//! `[server.cluster]`: several servers before one cluster, which clients see as the nodes of one.

use server::FrontsOptions;
use settings::{Reader, Section};

use super::{upstream, Config, Overrides};

/// What is said of it; none: nothing, or it is incomplete.
pub(super) fn read(section: &Section, overrides: &Overrides) -> Option<FrontsOptions> {
    let given = section.get("listen");
    let announce: Option<String> = section.get("announce");
    let node: Option<String> = section.get("node");
    let divide_weights = section.get_or_default("divide_weights");
    let node = overrides.node.clone().or(node);
    if let Some(why) = node.as_ref().and_then(|node| upstream::address(node).err()) {
        let what = format!("is no address of a node: {why}");
        section.error("node", &what, "write HOST:PORT");
    }
    let announce = announce.and_then(|text| {
        let place = place(&text);
        if place.is_none() {
            section.error("announce", "is no address", "write HOST:PORT");
        }
        place
    });
    let Some(listen) = overrides.cluster_listen.or(given) else {
        if overrides.node.is_some() && !section.present() {
            let what = "has no effect: this server is not one of several";
            section.error("node", what, "give --cluster-listen, too");
        }
        return None;
    };
    if listen.ip().is_unspecified() && !section.gives("announce") {
        let what = format!("{listen} is no address that clients could be told");
        section.error(
            "listen",
            &what,
            "add announce = \"HOST:PORT\", or name an address of this machine",
        );
    }
    Some(FrontsOptions {
        listen,
        announce,
        node,
        divide_weights,
    })
}

/// `HOST:PORT`. None: it is none.
fn place(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
    let host = match bare {
        Some(v6) => v6,
        None if host.contains(':') => return None,
        None => host,
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let good = !host.is_empty() && !host.contains(|letter: char| letter.is_whitespace());
    good.then(|| (host.to_owned(), port))
}

/// What of the rest of the configuration contradicts that it is one of several fronts.
pub(super) fn check(config: &Config, reader: &Reader) {
    let cluster = |upstream: &server::UpstreamOptions| upstream.cluster;
    if config.server.cluster.is_some() && !config.engine.upstream.as_ref().is_some_and(cluster) {
        let what = "has no effect: engine.kind is not \"redis-cluster\", and this server stands before no cluster";
        reader
            .report
            .borrow_mut()
            .error(reader.place("server.cluster"), "server.cluster", what)
            .advice("set engine.kind = \"redis-cluster\", or leave it out");
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn what_is_announced_has_a_host_and_a_port() {
        let some = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(place("a.example:7"), some("a.example", 7));
        assert_eq!(place("[::1]:7"), some("::1", 7));
        for wrong in ["a", ":7", "a:", "a:0", "a:x", "::1:7", "a b:7", "[]:7"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
