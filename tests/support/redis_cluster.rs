//! A real Redis Cluster on loopback: three masters, each with a replica.

use std::collections::BTreeSet;

use super::eventually;
use super::redis_server::{RedisServer, RedisServerBuilder, free_port};

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;

/// Six servers that are one cluster.
pub struct RedisCluster {
    nodes: Vec<(RedisServer, u16)>,
}

impl RedisCluster {
    /// Starts it and waits until all slots are served and all replicas follow. None, said loudly, where Redis isn't installed.
    pub fn start() -> Option<Self> {
        let nodes = (0..2 * MASTERS).map(|_| node(RedisServer::builder())).collect::<Option<_>>()?;
        Some(Self::of(nodes))
    }

    /// The same, where the wall clocks of each master and its replica are so many ms ahead.
    pub fn with_clocks(ahead: [i64; MASTERS]) -> Option<Self> {
        let moved = |ms| node(RedisServer::builder().clock_ahead(ms));
        let nodes = [ahead, ahead].concat().into_iter().map(moved).collect::<Option<_>>()?;
        Some(Self::of(nodes))
    }

    fn of(nodes: Vec<(RedisServer, u16)>) -> Self {
        let cluster = Self { nodes };
        for (i, (master, _)) in cluster.nodes.iter().take(MASTERS).enumerate() {
            let (first, last) = (i * SLOTS / MASTERS, (i + 1) * SLOTS / MASTERS - 1);
            master.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            master.cli(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
        }
        for (node, bus) in &cluster.nodes[1..] {
            let (port, bus) = (node.port().to_string(), bus.to_string());
            cluster.nodes[0].0.cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        for (i, (replica, _)) in cluster.nodes.iter().enumerate().skip(MASTERS) {
            let master = cluster.nodes[i - MASTERS].0.cli(&["CLUSTER", "MYID"]);
            eventually("everybody knows everybody", || {
                let nodes = replica.cli(&["CLUSTER", "NODES"]);
                let known = nodes.lines().filter(|line| !line.contains("handshake")).count();
                (known == 2 * MASTERS).then_some(())
            });
            replica.cli(&["CLUSTER", "REPLICATE", &master]);
        }
        cluster.settle();
        cluster
    }

    /// What a frontier on it is called.
    pub fn url(&self) -> String {
        let nodes: Vec<String> =
            self.nodes.iter().take(MASTERS).map(|(node, _)| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// Its servers that run.
    pub fn nodes(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().map(|(node, _)| node)
    }

    /// The server that has a key's slot.
    pub fn master_of(&self, key: &str) -> &RedisServer {
        let (asked, _) = &self.nodes[0];
        let slot: usize = asked.cli(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot");
        &self.nodes[self.master_of_slot(slot)].0
    }

    /// Ends that server as a power cut does, and waits until its replica is the master and all is served again.
    pub fn fail_over(&mut self, key: &str) {
        self.fail_over_after(key, || {});
    }

    /// The same, where the server is silent at first, while `meanwhile` lasts.
    pub fn fail_over_after(&mut self, key: &str, meanwhile: impl FnOnce()) {
        let slot = self.nodes[0].0.cli(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot");
        let (mut dead, _) = self.nodes.remove(self.master_of_slot(slot));
        dead.pause();
        meanwhile();
        dead.kill9();
        let gone = dead.port();
        eventually("its replica is promoted", || {
            let (asked, _) = &self.nodes[0];
            (port_of_slot(&asked.cli(&["CLUSTER", "NODES"]), slot)? != gone).then_some(())
        });
        self.settle();
    }

    /// Moves a key's slot to another master. `midway` is called when half of its keys are there, with that server and these
    /// keys.
    pub fn move_slot(&self, key: &str, midway: impl FnOnce(&RedisServer, &[&str])) {
        let slot = self.nodes[0].0.cli(&["CLUSTER", "KEYSLOT", key]);
        let from = self.master_of(key);
        let next = (slot.parse::<usize>().expect("a slot") + SLOTS / MASTERS) % SLOTS;
        let to = &self.nodes[self.master_of_slot(next)].0;
        let [from_id, to_id] = [from, to].map(|node| node.cli(&["CLUSTER", "MYID"]));
        to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
        from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
        let keys = from.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "10000"]);
        let keys: Vec<&str> = keys.lines().collect();
        let (first, second) = keys.split_at(keys.len() / 2);
        let port = to.port().to_string();
        let migrate = |keys: &[&str]| {
            let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            from.cli(&words.iter().chain(keys).copied().collect::<Vec<_>>());
        };
        migrate(first);
        midway(to, first);
        migrate(second);
        assert_eq!(from.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot]), "0", "keys were added meanwhile");
        for node in [to, from] {
            node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
        }
    }

    /// Waits until every server finds all slots served and every replica follows its master.
    fn settle(&self) {
        for (node, _) in &self.nodes {
            eventually("all slots are served", || {
                node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok").then_some(())
            });
            eventually("replicas follow", || {
                let link = node.info("master_link_status");
                link.is_none_or(|link| link == "up").then_some(())
            });
        }
        let masters: BTreeSet<u16> = (0..MASTERS)
            .map(|i| self.nodes[self.master_of_slot((2 * i + 1) * SLOTS / MASTERS / 2)].0.port())
            .collect();
        assert_eq!(masters.len(), MASTERS, "each third of the slots has a master of its own");
    }

    fn master_of_slot(&self, slot: usize) -> usize {
        let (asked, _) = &self.nodes[0];
        let port =
            eventually("somebody has the slot", || port_of_slot(&asked.cli(&["CLUSTER", "NODES"]), slot));
        self.nodes.iter().position(|(node, _)| node.port() == port).expect("one of these")
    }
}

fn node(builder: RedisServerBuilder) -> Option<(RedisServer, u16)> {
    let bus = free_port();
    let node = builder
        .set("cluster-enabled", "yes")
        .set("cluster-port", &bus.to_string())
        .set("cluster-node-timeout", "1000")
        .set("cluster-replica-validity-factor", "0")
        .start()?;
    Some((node, bus))
}

/// The port of the living server that has a slot, as `CLUSTER NODES` tells it.
fn port_of_slot(nodes: &str, slot: usize) -> Option<u16> {
    let line = nodes.lines().find(|line| {
        let mut words = line.split(' ');
        let flags = words.nth(2).unwrap_or("");
        let slots = words.skip(5).filter(|range| !range.starts_with('['));
        flags.contains("master")
            && !flags.contains("fail")
            && slots.into_iter().any(|range| holds(range, slot))
    })?;
    line.split(' ').nth(1)?.split('@').next()?.rsplit(':').next()?.parse().ok()
}

fn holds(range: &str, slot: usize) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    first.parse().is_ok_and(|first: usize| first <= slot)
        && last.parse().is_ok_and(|last: usize| slot <= last)
}
