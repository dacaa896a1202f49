//! The files of `examples/deploy` as they lie there: their commands are commands, no file has a password, and each service
//! has as few rights as it needs. [`super::deploy`] starts the Redis that they set up.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::support::*;

const UNIT: &str = "paced-work@.service";

pub fn file(name: &str) -> PathBuf {
    root().join("examples/deploy").join(name)
}

pub fn read(name: &str) -> String {
    fs::read_to_string(file(name)).expect("a file of the project")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program takes these words; `--help` at their end keeps it from doing anything.
fn assert_taken(words: &[String]) {
    let run = Paced::new(words).arg("--help").run();
    assert_eq!(run.code, Some(0), "{words:?}: {}", run.stderr);
}

#[test]
fn the_commands_of_the_services_are_taken() {
    let compose = read("compose.yaml");
    let commands = compose.lines().filter_map(|line| line.trim().strip_prefix("command: "));
    let commands: Vec<Vec<String>> =
        commands.map(|words| serde_json::from_str(words).expect("a list of words")).collect();
    let of_ours: Vec<_> = commands.iter().filter(|words| words[0] != "redis-server").collect();
    assert_eq!(of_ours.len(), 3, "{commands:?}");
    for words in of_ours {
        assert_taken(words);
    }
}

#[test]
fn the_command_of_the_unit_is_taken() {
    let unit = read(UNIT);
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/paced "));
    let words = start.expect("it starts the program").replace("%H-%i", "host-1");
    let words: Vec<String> =
        words.replace("$PACED_ROLE", "--role=download").split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "work");
    assert_taken(&words);
}

/// What looks like a password that is written down.
fn passwords(text: &str) -> Vec<String> {
    let written = [
        // In a URL, in an ACL's line, as a setting, as an option, in a variable. Variables and patterns aren't any.
        r"://[^/\s:]*:[^@\s%$(]+@",
        r"(?i)\buser\s.*\s[>#][0-9a-z]",
        r"(?im)^\s*(requirepass|masterauth)\s+\S",
        r"(?i)(--pass|--password|--requirepass|\s-a)[ =,]",
        r#"(?im)(password|secret|token|auth)[a-z_]*["']?[ \t]*[:=][ \t]*["']?[a-z0-9]"#,
        r"(?i)change-?me",
    ];
    let found = written.iter().flat_map(|pattern| {
        let pattern = Regex::new(pattern).expect("a pattern");
        pattern.find_iter(text).map(|found| found.as_str().to_owned()).collect::<Vec<_>>()
    });
    found.collect()
}

#[test]
fn no_file_has_a_password_and_a_planted_one_is_found() {
    let mut files = 0;
    for entry in fs::read_dir(root().join("examples/deploy")).expect("a folder").flatten() {
        if entry.path().is_file() {
            let text = fs::read_to_string(entry.path()).expect("a text");
            assert_eq!(passwords(&text), Vec::<String>::new(), "{}", entry.path().display());
            files += 1;
        }
    }
    assert!(files >= 6, "{files}");
    for planted in [
        "PACED_FRONTIER=redis://paced:sesame@redis/0",
        "PACED_FRONTIER: redis://:sesame@redis",
        "user paced on >sesame resetkeys",
        "user paced on #0123456789abcdef resetkeys",
        "requirepass sesame",
        "redis-cli --user paced --pass sesame ping",
        "redis-cli -a sesame ping",
        "REDIS_PASSWORD=sesame",
        "  POSTGRES_PASSWORD: sesame",
        ">change-me",
    ] {
        assert!(!passwords(planted).is_empty(), "{planted}");
    }
}

/// The lines of each service of the compose file, those that it takes over from another one included.
fn services() -> BTreeMap<String, Vec<String>> {
    let compose = read("compose.yaml");
    let mut services: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut shared, mut name) = (String::new(), String::new());
    let within = compose.lines().skip_while(|line| *line != "services:").skip(1);
    for line in within.take_while(|line| line.is_empty() || line.starts_with([' ', '#'])) {
        if let Some(begun) =
            line.strip_prefix("  ").filter(|rest| rest.starts_with(|c: char| c.is_alphabetic()))
        {
            begun.split(':').next().unwrap_or_default().clone_into(&mut name);
            if begun.ends_with("&paced") {
                shared.clone_from(&name);
            }
            services.insert(name.clone(), Vec::new());
        } else if line.trim() == "<<: *paced" {
            let lines = services[&shared].clone();
            services.get_mut(&name).expect("begun").extend(lines);
        } else if let Some(lines) = services.get_mut(&name) {
            lines.push(line.trim().to_owned());
        }
    }
    services
}

#[test]
fn each_service_is_a_numeric_user_without_rights_on_a_root_that_it_cannot_write() {
    let services = services();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["download", "parse", "redis", "seed"]);
    let user = Regex::new(r#"^user: "[1-9]\d*:[1-9]\d*"$"#).expect("a pattern");
    let limit = Regex::new("^mem_limit: [1-9][0-9]*g$").expect("a pattern");
    for (name, lines) in services {
        for line in ["read_only: true", "cap_drop: [ALL]", r#"security_opt: ["no-new-privileges:true"]"#] {
            assert!(lines.iter().any(|other| other == line), "{name} lacks {line}");
        }
        for (what, pattern) in [("user", &user), ("mem_limit", &limit)] {
            assert!(lines.iter().any(|line| pattern.is_match(line)), "{name}: {what}");
        }
        for never in ["privileged", "cap_add", "ports:", "network_mode", "docker.sock", "PACED_FRONTIER:"] {
            assert!(!lines.iter().any(|line| line.contains(never)), "{name}: {never}");
        }
    }
    let image = read("Dockerfile");
    let users: Vec<&str> = image.lines().filter_map(|line| line.strip_prefix("USER ")).collect();
    assert_eq!(users, ["10001:10001"], "the image's user is the services'");
    assert!(read("compose.yaml").contains(r#"user: "10001:10001""#));
}

#[test]
fn the_image_is_built_from_what_cargo_needs_and_nothing_else() {
    let ignored = fs::read_to_string(root().join(".dockerignore")).expect("it is there");
    let lines: Vec<&str> =
        ignored.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(lines[0], "*", "what isn't named stays out");
    let taken: Vec<&str> =
        lines[1..].iter().map(|line| line.strip_prefix('!').expect("a path taken in")).collect();
    let context = TempData::new();
    for path in taken {
        let into = context.file(path);
        fs::create_dir_all(into.parent().expect("a folder")).expect("made");
        let copied = Command::new("cp").arg("-R").arg(root().join(path)).arg(&into).status().expect("cp");
        assert!(copied.success(), "{path}");
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"]);
    let run = cargo.current_dir(context.path()).output().expect("cargo");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let targets = metadata["packages"][0]["targets"].as_array().expect("targets");
    assert!(targets.iter().any(|target| target["kind"][0] == "bin" && target["name"] == "paced"));
    for kept_out in [".git", "docs", "examples", "sites", "paced-data", "target"] {
        assert!(!context.file(kept_out).exists(), "{kept_out}");
    }
}

/// What the unit must say, by what a process that was taken over could do otherwise.
const RIGHTS: &[&str] = &[
    "User=paced",
    "UMask=0077",
    "StateDirectory=paced",
    "StateDirectoryMode=0700",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "ProtectProc=invisible",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallErrorNumber=EPERM",
    "SystemCallArchitectures=native",
    "MemoryDenyWriteExecute=yes",
    "LockPersonality=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "PrivateUsers=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "RemoveIPC=yes",
    "MemoryMax=1G",
    "TasksMax=256",
    "LimitCORE=0",
    "LoadCredential=url:/etc/paced/frontier/url",
    "Environment=PACED_FRONTIER_FILE=%d/url",
];

/// Its other keys.
const KEYS: &[&str] = &[
    "Description",
    "After",
    "Wants",
    "WantedBy",
    "Environment",
    "EnvironmentFile",
    "ExecStart",
    "ExecReload",
    "KillSignal",
    "TimeoutStopSec",
    "Restart",
    "RestartSec",
    "RestartPreventExitStatus",
    "SuccessExitStatus",
];

#[test]
fn what_is_drained_is_not_started_again() {
    let unit = read(UNIT);
    for line in ["Restart=always", "RestartPreventExitStatus=75", "SuccessExitStatus=75"] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    let services = services();
    for name in ["download", "parse"] {
        for line in ["PACED_DRAINED_EXIT: 0", "restart: on-failure"] {
            assert!(services[name].iter().any(|found| found.trim() == line), "{name}: {line}");
        }
    }
}

#[test]
fn the_unit_takes_all_rights_that_a_worker_does_not_need_and_each_of_its_keys_is_known() {
    let unit = read(UNIT);
    let lines: Vec<&str> = unit.lines().filter(|line| line.contains('=') && !line.starts_with('#')).collect();
    for right in RIGHTS {
        assert!(lines.contains(right), "{right}");
    }
    for line in lines.iter().filter(|line| !RIGHTS.contains(line)) {
        assert!(KEYS.contains(&line.split('=').next().unwrap_or_default()), "{line}");
    }
}

/// Where systemd is installed, it says what it makes of the unit.
#[test]
fn systemd_knows_the_unit_and_calls_it_little_exposed() {
    let analyze = |words: &[&str]| Command::new("systemd-analyze").args(words).arg(file(UNIT)).output();
    let Ok(run) = analyze(&["verify", "--man=no"]) else {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"SKIPPED: no `systemd-analyze`\n");
        return;
    };
    let said = String::from_utf8_lossy(&run.stderr);
    for wrong in ["Unknown", "Failed to parse", "ignoring", "Invalid"] {
        assert!(!said.contains(wrong), "{said}");
    }
    let run = analyze(&["security", "--offline=true", "--threshold=20"]).expect("it is there");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}");
}
