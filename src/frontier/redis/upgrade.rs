//! Brings a frontier of an earlier schema up to date, in short steps on the server (`lua/upgrade.lua`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::address::Address;
use super::batch_call::{BatchCall, Joined};
use super::client::RedisClient;
use super::connection::key_of;
use super::error::from_redis;
use crate::clock::Clock;
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::patience::Patience;

/// How often a process that waits for another one's upgrade looks.
const LOOK: Patience = Patience::new(Duration::from_millis(50), Duration::from_millis(50));

/// One process's way through an upgrade.
pub(super) struct Upgrade<'a> {
    pub(super) server: &'a mut RedisClient,
    pub(super) address: &'a Address,
    /// A test's clock.
    pub(super) fake: Option<&'a Clock>,
    /// The schema that is there, and this build's.
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) partitions: usize,
    /// As whom it is known in each partition.
    pub(super) joined: BTreeMap<usize, Option<Joined>>,
}

impl Upgrade<'_> {
    /// Upgrades, or waits until another process has.
    pub(super) async fn run(mut self) -> Result<(), FrontierError> {
        let token = format!("{:016x}", fastrand::u64(..));
        let [from, to] = [self.from, self.to].map(|schema| format!("{schema} {}", self.partitions));
        let under_way = format!("{to} {}", self.from);
        let mut looks = LOOK.begin();
        loop {
            let (taken, stands_against): (bool, Value) =
                self.ask(0, json!(["upgrade.take", token, from, under_way])).await?;
            if let Some(process) = stands_against.as_str() {
                return Err(FrontierError::older_in_use(self.from, self.address.shown.clone(), process));
            }
            if taken {
                break;
            }
            let now: Option<String> = self
                .server
                .query(redis::cmd("GET").arg("{paced:0}:schema"))
                .await
                .map_err(|e| from_redis(self.address, &e))?;
            if now.as_deref() == Some(&to) {
                return Ok(());
            }
            looks.again().await;
        }
        for partition in 0..self.partitions {
            let mut next = Some((self.from, "0".to_owned()));
            while let Some((schema, place)) = next {
                let step: Value = self.ask(partition, json!(["upgrade.step", schema, place])).await?;
                next = serde_json::from_value(step).unwrap_or(None);
                let _: Value = self.ask(0, json!(["upgrade.take", token, from, under_way])).await?;
            }
        }
        let _: bool = self.ask(0, json!(["upgrade.done", token, to])).await?;
        Ok(())
    }

    async fn ask<T: DeserializeOwned>(&mut self, partition: usize, step: Value) -> Result<T, FrontierError> {
        let fake = self.fake.map_or(String::new(), |clock| clock.now().as_millis().to_string());
        let steps =
            rmp_serde::to_vec(&[step]).map_err(|why| self.error(FrontierErrorKind::Broken).because(why))?;
        let mut call = BatchCall { steps, reads: false, number: None, asked: None };
        let key = key_of(partition);
        let called = call.run(self.server, &key, self.joined.entry(partition).or_default(), &fake).await;
        let answer = called.map_err(|error| from_redis(self.address, &error))?;
        let (_, [reply]): (i64, [T; 1]) = rmp_serde::from_slice(&answer)
            .map_err(|why| self.error(FrontierErrorKind::Broken).because(why))?;
        Ok(reply)
    }

    fn error(&self, kind: FrontierErrorKind) -> FrontierError {
        FrontierError::new(kind, self.address.shown.clone())
    }
}
