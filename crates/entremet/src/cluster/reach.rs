//! Connections to the nodes of a cluster.

use std::collections::{BTreeMap, HashMap};
use std::net::ToSocketAddrs;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use server::UpstreamOptions;

use super::nodes::{Node, View, Views};
use super::slots::Slots;
use super::Failure;
use crate::client::{Client, ClientError, Reply, Target, Words};

/// A change is known to all nodes within less than this.
const AGREED: Duration = Duration::from_secs(10);
/// Between two looks whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The nodes of a cluster.
pub struct Nodes {
    options: UpstreamOptions,
    clients: HashMap<String, Client>,
}

impl Nodes {
    /// Those of the cluster of these options; a node that is silent for longer than they say is
    /// away.
    pub fn new(options: &UpstreamOptions) -> Self {
        Self {
            options: options.clone(),
            clients: HashMap::new(),
        }
    }

    /// The words with which a node logs in at another to hand it keys.
    pub fn login(&self) -> Vec<Vec<u8>> {
        let Some(password) = &self.options.password else {
            return Vec::new();
        };
        let user = self.options.user.as_deref().unwrap_or("default");
        ["AUTH2", user, password]
            .map(|word| word.as_bytes().to_vec())
            .into()
    }

    /// Asks the node at `at` several things at once.
    ///
    /// # Errors
    /// It is away, or refuses one of them.
    pub fn ask_all(&mut self, at: &str, commands: &[Words<'_>]) -> Result<Vec<Reply>, Failure> {
        self.with(at, |client| client.ask_all(commands))
    }

    /// Asks the node at `at` several things at once, any of which it may refuse.
    ///
    /// # Errors
    /// It is away.
    pub fn try_all(&mut self, at: &str, commands: &[Words<'_>]) -> Result<Vec<Reply>, Failure> {
        self.with(at, |client| client.try_all(commands))
    }

    /// Does something on the connection to the node at `at`. One that breaks is not kept.
    fn with<T>(
        &mut self,
        at: &str,
        ask: impl FnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, Failure> {
        let mut client = match self.clients.remove(at) {
            Some(client) => client,
            None => self.connect(at)?,
        };
        let replies = ask(&mut client);
        if !matches!(replies, Err(ClientError::Connection { .. })) {
            self.clients.insert(at.to_owned(), client);
        }
        Ok(replies?)
    }

    /// Asks the node at `at` one thing.
    ///
    /// # Errors
    /// It is away, or refuses it.
    pub fn ask(&mut self, at: &str, words: &[&[u8]]) -> Result<Reply, Failure> {
        let replies = self.ask_all(at, &[words.to_vec()])?;
        Ok(replies.into_iter().next().unwrap_or(Reply::Nothing))
    }

    /// Asks the node at `at` what it answers with a text.
    ///
    /// # Errors
    /// It is away, or answers something else.
    pub fn text(&mut self, at: &str, words: &[&[u8]]) -> Result<String, Failure> {
        match self.ask(at, words)? {
            Reply::Bulk(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => Err(strange(at, words)),
        }
    }

    /// Asks the node at `at` what it answers with a number.
    ///
    /// # Errors
    /// It is away, or answers something else.
    pub fn number(&mut self, at: &str, words: &[&[u8]]) -> Result<u64, Failure> {
        match self.ask(at, words)? {
            Reply::Integer(number) => Ok(u64::try_from(number).unwrap_or(0)),
            _ => Err(strange(at, words)),
        }
    }

    /// Whether the node at `at` becomes a replica when its last slot moves away.
    ///
    /// # Errors
    /// It is away, or does not say.
    pub fn becomes_a_replica(&mut self, at: &str) -> Result<bool, Failure> {
        let words: [&[u8]; 3] = [b"CONFIG", b"GET", b"cluster-allow-replica-migration"];
        match self.ask(at, &words)? {
            Reply::List(pair) => Ok(pair.get(1) != Some(&Reply::Bulk(b"no".to_vec()))),
            _ => Err(strange(at, &words)),
        }
    }

    /// That the node at `at` takes its cluster to be up.
    ///
    /// # Errors
    /// It does not, or is away.
    pub fn up(&mut self, at: &str) -> Result<(), Failure> {
        let info = self.text(at, &[b"CLUSTER", b"INFO"])?;
        match info.contains("cluster_state:ok") {
            true => Ok(()),
            false => Err(format!("{at} says that its cluster is down").into()),
        }
    }

    fn connect(&self, at: &str) -> Result<Client, Failure> {
        let address = at.to_socket_addrs().ok().and_then(|mut all| all.next());
        let target = Target {
            address: address.ok_or_else(|| format!("{at} is no address of a node"))?,
            tls: None,
            client: "entremet-cluster".into(),
            patience: self.options.patience,
        };
        let user = self.options.user.as_deref().unwrap_or("default");
        Ok(Client::connect(
            &target,
            user,
            self.options.password.as_deref(),
        )?)
    }

    /// What the node at `at` says of all.
    ///
    /// # Errors
    /// It is away, or no node of a cluster.
    pub fn view(&mut self, at: &str) -> Result<View, Failure> {
        let reply = self.ask(at, &[b"CLUSTER", b"NODES"])?;
        view_in(at, Some(&reply))
    }

    /// What all masters say that are there.
    ///
    /// # Errors
    /// No node answers of those that were named, or one does not that is said to be there.
    pub fn views(&mut self) -> Result<Views, Failure> {
        let mut why: Failure = "no node was named".into();
        for at in self.options.addresses.clone() {
            let first = match self.view(&at) {
                Ok(first) => first,
                Err(failed) => {
                    why = failed;
                    continue;
                }
            };
            let by_master = self.views_of(&first)?;
            return Ok(Views { first, by_master });
        }
        Err(why)
    }

    /// What each master says, by its name. All are asked at once: each may have much to do, and
    /// lets this wait for its turn.
    fn views_of(&mut self, first: &View) -> Result<BTreeMap<String, View>, Failure> {
        let words: [Words<'_>; 1] = [vec![b"CLUSTER", b"NODES"]];
        let masters: Vec<&Node> = first.masters().collect();
        let mut clients = Vec::with_capacity(masters.len());
        for node in &masters {
            let client = self.clients.remove(&node.at);
            clients.push(client.map_or_else(|| self.connect(&node.at), Ok)?);
        }
        let replies: Vec<Result<Vec<Reply>, ClientError>> = thread::scope(|scope| {
            let asked = clients.iter_mut().map(|client| {
                let words = &words;
                scope.spawn(move || client.ask_all(words))
            });
            let asked: Vec<_> = asked.collect();
            let ended = asked.into_iter().map(|one| one.join());
            ended
                .map(|one| one.unwrap_or_else(|why| resume_unwind(why)))
                .collect()
        });
        let mut views = BTreeMap::new();
        for ((node, client), replies) in masters.into_iter().zip(clients).zip(replies) {
            let replies = replies?;
            self.clients.insert(node.at.clone(), client);
            views.insert(node.id.clone(), view_in(&node.at, replies.first())?);
        }
        Ok(views)
    }

    /// What all masters say, as soon as they agree: news takes a moment. Of the slots `moving` they
    /// need not.
    ///
    /// # Errors
    /// They do not agree for long, or one does not answer.
    pub fn agreed(&mut self, moving: Option<Slots>) -> Result<Views, Failure> {
        let until = Instant::now() + AGREED;
        loop {
            let views = self.views()?;
            let Some(dispute) = views.dispute(moving) else {
                return Ok(views);
            };
            if Instant::now() > until {
                return Err(format!(
                    "nodes of the cluster do not agree: {dispute}; see `entremet cluster check`, and mend it with `redis-cli --cluster fix` if it stays so"
                )
                .into());
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// What a node at `at` says of all, in its reply.
fn view_in(at: &str, reply: Option<&Reply>) -> Result<View, Failure> {
    let host = at.rsplit_once(':').map_or(at, |(host, _)| host);
    let view = match reply {
        Some(Reply::Bulk(text)) => View::read(&String::from_utf8_lossy(text), host),
        _ => None,
    };
    view.ok_or_else(|| strange(at, &[b"CLUSTER", b"NODES"]))
}

/// It answers as no Redis does.
pub fn strange(at: &str, words: &[&[u8]]) -> Failure {
    let words = words
        .iter()
        .take(2)
        .map(|word| String::from_utf8_lossy(word));
    let words: Vec<_> = words.collect();
    format!(
        "the answer of {at} to {} is not understood",
        words.join(" ")
    )
    .into()
}

/// A field of what `INFO` says, as a number.
pub fn field(info: &str, name: &str) -> u64 {
    let mut lines = info.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

/// What a node says to `TIME`: seconds and microseconds.
pub fn time_of(reply: &Reply) -> Option<Duration> {
    let Reply::List(items) = reply else {
        return None;
    };
    let number = |item: &Reply| match item {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    };
    let [seconds, micros] = &items[..] else {
        return None;
    };
    Some(Duration::from_secs(number(seconds)?) + Duration::from_micros(number(micros)?))
}
