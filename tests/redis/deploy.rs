//! The Redis that `examples/deploy` sets up: it doesn't start without a password of its own, a frontier is content with it,
//! and its user may do no more. [`super::deploy_files`] reads the other files there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::deploy_files::{file, read};
use crate::ground::{Ground, SiteFile, ms, star};
use crate::support::*;

/// What `password.sh` made, in a folder of its own.
struct Made {
    data: TempData,
}

impl Made {
    fn new() -> Self {
        let made = Self { data: TempData::new() };
        let run = made.run(&[&made.folder()]);
        assert!(run.status.success(), "{run:?}");
        let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(!said.contains(&made.password()), "it is shown: {said}");
        made
    }

    fn run(&self, words: &[&Path]) -> Output {
        Command::new("sh")
            .arg(file("password.sh"))
            .args(words)
            .current_dir(self.data.path())
            .output()
            .expect("sh")
    }

    fn folder(&self) -> PathBuf {
        self.data.file("secrets")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).expect("it is made")
    }

    fn password(&self) -> String {
        let url = self.text("url");
        let password = url.strip_prefix("redis://paced:").and_then(|rest| rest.strip_suffix("@redis/0\n"));
        password.unwrap_or_else(|| panic!("{url}")).to_owned()
    }

    /// A Redis with the settings and these users.
    fn redis(&self, settings: &str) -> RedisServerBuilder {
        let settings = self.data.write("paced.conf", settings);
        RedisServer::builder()
            .set("include", &settings.display().to_string())
            .set("aclfile", &self.folder().join("users.acl").display().to_string())
            .known_as("paced", &self.password())
    }
}

#[test]
fn a_redis_with_these_settings_does_not_start_until_it_has_a_password() {
    let data = TempData::new();
    let include = file("redis.conf").display().to_string();
    let dir = data.path().display();
    let settings = format!("include {include}\ndir {dir}\nport 0\nunixsocket redis.sock\n");
    let settings = data.write("redis.conf", &settings);
    let Ok(run) = Command::new("timeout").args(["20", "redis-server"]).arg(settings).output() else { return };
    if run.status.code() == Some(127) {
        return skip("no `redis-server`; install the package of that name");
    }
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("/etc/redis/paced.acl"), "it names what it lacks: {said}");
}

#[test]
fn a_redis_with_these_settings_and_this_user_keeps_a_frontier_without_a_warning() {
    let made = Made::new();
    let Some(redis) = made.redis(&read("redis.conf")).start() else { return };
    let site = star(10).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let run = ground.crawl().env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    assert!(!run.stderr.contains("WARN"), "{}", run.stderr);
    assert_eq!(ground.items("shop").len(), 11);
    let run = ground.verb("status").env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    assert!(run.stdout.contains("shop"), "{}", run.stdout);
    let mut cli = redis.connect();
    for forbidden in [&["FLUSHALL"][..], &["SET", "another program's", "1"], &["CONFIG", "GET", "*"]] {
        let said = cli.say(forbidden).expect("an answer");
        assert!(matches!(&said, Said::Error(why) if why.starts_with("NOPERM")), "{forbidden:?}: {said:?}");
    }
    let mut stranger = RedisCli::unix(&redis.socket()).expect("a connection");
    let said = stranger.say(&["PING"]).expect("an answer");
    assert!(matches!(&said, Said::Error(why) if why.starts_with("NOAUTH")), "{said:?}");
}

#[test]
fn the_settings_for_tls_are_ones_that_a_redis_takes() {
    let made = Made::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let at = |name: &str| data.join(name).display().to_string();
    // A setting is a comment without a blank after its mark.
    let lines = read("redis.conf").replace("\n#", "\n").replace("\n ", "\n# ");
    let settings = lines
        .replace("/etc/redis/tls/cert.pem", &at("localhost.cert.pem"))
        .replace("/etc/redis/tls/key.pem", &at("localhost.key.pem"))
        .replace("/etc/redis/tls/ca.pem", &at("localhost.cert.pem"));
    // The test's server has a port of its own.
    let (before, after) = settings.split_once("\ntls-port 6379\n").expect("its port");
    let settings = [before, after].join("\n");
    let Some(redis) = made.redis(&settings).tls().start() else { return };
    let ground = Ground::new([SiteFile::new("shop", "http://127.0.0.1:9/")]);
    let url = made.data.write("url", &redis.url(0));
    let run =
        ground.verb("status").env("PACED_FRONTIER_FILE", url).env("SSL_CERT_FILE", at("localhost.cert.pem"));
    let run = run.run().expect_code(1);
    assert!(redis.url(0).starts_with("rediss://"));
    assert!(run.stderr.contains("there is no frontier"), "it is reached, and empty: {run:?}");
}

#[test]
fn the_health_check_knows_the_password_and_is_content_with_nothing_less() {
    let made = Made::new();
    let Some(redis) = made.redis(&read("redis.conf")).start() else { return };
    let compose = read("compose.yaml");
    let check = compose.split_once(r#"test: ["CMD-SHELL", '"#).and_then(|(_, rest)| rest.split_once("']"));
    let check = check.expect("the health check").0;
    let healthy = |url: &Path| {
        let client = format!("redis-cli -s {}", redis.socket().display());
        let script =
            check.replace("/run/secrets/frontier", &url.display().to_string()).replace("redis-cli", &client);
        Command::new("sh").args(["-c", &script]).output().expect("sh").status.success()
    };
    assert!(healthy(&made.folder().join("url")), "{check}");
    assert!(!healthy(&made.data.write("other", "redis://paced:another@redis/0\n")), "{check}");
}

#[test]
fn a_password_is_made_once_for_its_owner_alone_and_anew_each_time() {
    use std::os::unix::fs::PermissionsExt;
    let (made, other) = (Made::new(), Made::new());
    assert_ne!(made.password(), other.password());
    assert!(made.password().len() == 64 && !made.text("users.acl").contains(&made.password()));
    assert_eq!(fs::metadata(made.folder()).expect("made").permissions().mode() & 0o777, 0o700);
    let before = made.text("url");
    assert!(!made.run(&[&made.folder()]).status.success(), "one is there");
    assert_eq!(made.text("url"), before);
    let at = Path::new("rediss://redis.internal:6380");
    assert!(made.run(&[Path::new("tls"), at]).status.success());
    let url = fs::read_to_string(made.data.file("tls/url")).expect("made");
    assert!(url.starts_with("rediss://paced:") && url.ends_with("@redis.internal:6380/0\n"), "{url}");
    for wrong in ["redis.internal", "redis://me:secret@redis.internal"] {
        let run = made.run(&[Path::new("wrong"), Path::new(wrong)]);
        assert_eq!(run.status.code(), Some(2), "{wrong}");
        assert!(!String::from_utf8_lossy(&run.stderr).contains("secret"), "{run:?}");
    }
    assert!(!made.data.file("wrong").exists());
}
