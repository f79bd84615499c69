//! Connections to the nodes of a cluster.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::ToSocketAddrs;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::error::ErrorKind;
use clap::Args;
use front::host_of;
use rustls::ClientConfig;

use super::nodes::{Node, View, Views};
use super::slots::Slots;
use super::Failure;
use crate::admin::{trust, Tls};
use crate::client::{Client, ClientError, Reply, Target, Words};
use crate::config::{EngineUrl, KeyPair, TrustFiles};

/// A node that is silent for so long while it is asked is away.
const PATIENCE: Duration = Duration::from_secs(15);
/// One that is asked what it knows of all is not waited for longer at a time: another may know as
/// much, or that it is gone.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);
/// A change is known to all nodes within less than this.
const AGREED: Duration = Duration::from_secs(10);
/// Between two looks whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const NO_TLS: &str = "--ca has no effect: --at does not ask for TLS. Write rediss-cluster://\n";
const NO_CA: &str =
    "--ca is missing: --at asks for TLS. Name the file with the certificates of those \
    who may sign the nodes'\n";

/// Which cluster.
#[derive(Args, Clone, Debug)]
pub struct AtArgs {
    /// The cluster, as fronts are told of it (engine.url): redis-cluster://HOST:PORT,HOST:PORT,
    /// with USER:PASSWORD@ before the first host if its nodes ask for it; rediss-cluster:// for TLS
    #[arg(long, value_name = "URL", value_parser = cluster)]
    pub at: EngineUrl,

    /// With TLS, trust nodes whose certificates one in this file (PEM) has signed
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// With TLS, show nodes the certificate in this file (PEM)
    #[arg(long, value_name = "FILE", requires = "key", requires = "ca")]
    pub cert: Option<PathBuf>,

    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Name in the nodes' certificates, where it is not the host of each
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub name: Option<String>,
}

impl AtArgs {
    /// How its nodes are reached. Options that do not go together end the process, as all that is
    /// wrong with a command line.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn reach(&self) -> Result<Reach, Failure> {
        let wrong = |kind, what| clap::Error::raw(kind, what).exit();
        let tls = match (self.at.tls, &self.ca) {
            (false, None) => None,
            (false, Some(_)) => wrong(ErrorKind::ArgumentConflict, NO_TLS),
            (true, None) => wrong(ErrorKind::MissingRequiredArgument, NO_CA),
            (true, Some(ca)) => {
                let own = self.cert.clone().zip(self.key.clone());
                Some(trust(&TrustFiles {
                    ca: ca.clone(),
                    own: own.map(|(cert, key)| KeyPair { cert, key }),
                })?)
            }
        };
        Ok(Reach {
            url: self.at.clone(),
            tls,
            name: self.name.clone(),
        })
    }
}

/// A cluster, as its URL says.
fn cluster(url: &str) -> Result<EngineUrl, String> {
    let url: EngineUrl = url.parse()?;
    match url.cluster {
        true => Ok(url),
        false => Err("a cluster is meant: redis-cluster://HOST:PORT".into()),
    }
}

/// How the nodes of a cluster are reached.
#[derive(Clone)]
pub struct Reach {
    /// Where some of them are, and how one logs in.
    pub url: EngineUrl,
    /// By TLS, with this; none: in the clear.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whose certificate each must have; none: that of the host by which it is reached.
    pub name: Option<String>,
}

impl Reach {
    /// In the clear.
    pub fn plain(url: EngineUrl) -> Self {
        Self {
            url,
            tls: None,
            name: None,
        }
    }
}

/// The nodes of a cluster.
pub struct Nodes {
    /// How they are reached; who answered last is named first.
    pub reach: Reach,
    clients: HashMap<String, Client>,
}

impl Nodes {
    /// Those of a cluster.
    pub fn new(reach: &Reach) -> Self {
        Self {
            reach: reach.clone(),
            clients: HashMap::new(),
        }
    }

    /// The words with which a node logs in at another to hand it keys.
    pub fn login(&self) -> Vec<Vec<u8>> {
        let Some(password) = &self.reach.url.password else {
            return Vec::new();
        };
        let user = self.reach.url.user.as_deref().unwrap_or("default");
        ["AUTH2", user, password]
            .map(|word| word.as_bytes().to_vec())
            .into()
    }

    /// Asks the node at `at` several things at once.
    ///
    /// # Errors
    /// It is away, or refuses one of them.
    pub fn ask_all(&mut self, at: &str, commands: &[Words<'_>]) -> Result<Vec<Reply>, Failure> {
        self.with(at, PATIENCE, |client| client.ask_all(commands))
    }

    /// Asks the node at `at` several things at once, any of which it may refuse.
    ///
    /// # Errors
    /// It is away.
    pub fn try_all(&mut self, at: &str, commands: &[Words<'_>]) -> Result<Vec<Reply>, Failure> {
        self.with(at, PATIENCE, |client| client.try_all(commands))
    }

    /// Does something on the connection to the node at `at`. One that breaks is not kept.
    fn with<T>(
        &mut self,
        at: &str,
        patience: Duration,
        ask: impl FnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, Failure> {
        let mut client = self.client(at, patience)?;
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

    /// The connection to a node, which is to be put back if it does not break.
    fn client(&mut self, at: &str, patience: Duration) -> Result<Client, Failure> {
        match self.clients.remove(at) {
            Some(mut client) => {
                client.set_patience(patience)?;
                Ok(client)
            }
            None => self.connect(at, patience),
        }
    }

    fn connect(&self, at: &str, patience: Duration) -> Result<Client, Failure> {
        let address = at.to_socket_addrs().ok().and_then(|mut all| all.next());
        let name = self.reach.name.as_deref().unwrap_or(host_of(at));
        let tls = self.reach.tls.as_ref();
        let tls = tls.map(|config| Tls::of(Arc::clone(config), name));
        let target = Target {
            address: address.ok_or_else(|| format!("{at} is no address of a node"))?,
            tls: tls.transpose()?,
            client: "entremet-cluster".into(),
            patience,
        };
        let user = self.reach.url.user.as_deref().unwrap_or("default");
        Ok(Client::connect(
            &target,
            user,
            self.reach.url.password.as_deref(),
        )?)
    }

    /// What the node at `at` says of all.
    ///
    /// # Errors
    /// It is away, or no node of a cluster.
    pub fn view(&mut self, at: &str) -> Result<View, Failure> {
        self.view_within(at, PATIENCE)
    }

    fn view_within(&mut self, at: &str, patience: Duration) -> Result<View, Failure> {
        let words: Words<'_> = vec![b"CLUSTER", b"NODES"];
        let reply = self.with(at, patience, |client| client.ask(words))?;
        view_in(at, Some(&reply))
    }

    /// What all masters say that are there.
    ///
    /// # Errors
    /// No node answers of those that were named, or one does not that is said to be there.
    pub fn views(&mut self) -> Result<Views, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let first = self.first_view()?;
            match self.views_of(&first) {
                Ok(by_master) => return Ok(Views { first, by_master }),
                // The others may know soon that it is gone, or hear that it is a replica by now.
                Err(why) if is_silence(&why) && Instant::now() < until => {}
                Err(why) => return Err(why),
            }
        }
    }

    /// What one of the nodes says that were named. One that hangs may be among them: who answered
    /// last is asked first, and others soon; only if all are slow each is waited for.
    fn first_view(&mut self) -> Result<View, Failure> {
        let mut why: Failure = "no node was named".into();
        for patience in [LOOK_PATIENCE, PATIENCE] {
            for place in 0..self.reach.url.addresses.len() {
                let at = self.reach.url.addresses[place].clone();
                match self.view_within(&at, patience) {
                    Ok(first) => {
                        self.reach.url.addresses[..=place].rotate_right(1);
                        return Ok(first);
                    }
                    Err(failed) => why = failed,
                }
            }
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
            clients.push(self.client(&node.at, LOOK_PATIENCE)?);
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
    pub fn agreed(&mut self, moving: &[Slots]) -> Result<Views, Failure> {
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

/// Whether a node did not answer for as long as it was waited for.
fn is_silence(why: &Failure) -> bool {
    let source = match why.downcast_ref() {
        Some(ClientError::Connection { source, .. }) => source.kind(),
        _ => return false,
    };
    matches!(source, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
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
