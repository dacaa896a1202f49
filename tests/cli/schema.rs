//! `check --schema`: by another program's validator, what the reader takes is valid and what it refuses for its form isn't.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::expected::*;
use crate::support::*;

/// Tells of each TOML text on stdin, a JSON list of them, what is wrong with it.
const VALIDATE: &str = "
import json, sys, tomllib, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for text in json.load(sys.stdin):
    errors = validator.iter_errors(tomllib.loads(text))
    print(json.dumps([f'{error.json_path}: {error.message}' for error in errors]))
";

const RIGHT: &str = "seeds = [\"https://shop.example/\"]\n[[page]]\nname = \"all\"\nmatch = \"/**\"\nitem = true\n[page.fields]\ntitle = \"h1\"\n";

/// The Python of `tests/venv.sh`, or the system's, if it can validate.
fn python() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let venv = std::env::var_os("PACED_VENV").map_or_else(beside, PathBuf::from);
    let can = |python: &PathBuf| {
        let asked =
            Command::new(python).args(["-c", "import tomllib, jsonschema"]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let found = [venv.join("bin/python"), PathBuf::from("python3")].into_iter().find(can);
    if found.is_none() {
        skip("no Python with jsonschema; `sh tests/venv.sh` puts one beside Cargo.toml");
    }
    found
}

/// What is wrong with each text by the schema.
fn errors_in(python: &Path, schema: &Path, texts: &[String]) -> Vec<Vec<String>> {
    let mut validator = Command::new(python)
        .args(["-c", VALIDATE])
        .arg(schema)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python was found");
    let mut stdin = validator.stdin.take().expect("a pipe");
    stdin.write_all(serde_json::json!(texts).to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = validator.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the validator failed");
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("a list")).collect()
}

fn schema(data: &TempData) -> PathBuf {
    let printed = Paced::new(["check", "--schema"]).run().expect_code(0).stdout;
    data.write("schema.json", &printed)
}

fn right_files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sites = std::fs::read_dir(root.join("sites")).expect("a folder").flatten().map(|entry| entry.path());
    let sites = sites.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let files = sites.chain([root.join("tests/fixtures/site_files/every_key.toml")]);
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a site file");
    let texts: Vec<String> = files.map(read).chain([RIGHT.to_owned()]).collect();
    assert!(texts.len() >= 4, "only {} files", texts.len());
    texts
}

#[test]
fn every_right_site_file_is_valid() {
    let Some(python) = python() else { return };
    let data = TempData::new();
    let texts = right_files();
    for (text, errors) in texts.iter().zip(errors_in(&python, &schema(&data), &texts)) {
        assert!(errors.is_empty(), "{errors:?} in\n{text}");
    }
}

#[test]
fn what_is_wrong_in_its_form_is_wrong_for_reader_and_schema() {
    let Some(python) = python() else { return };
    let data = TempData::new();
    let page = "name = \"all\"\n";
    let texts: Vec<String> = [
        ("seeds = [\"https://shop.example/\"]\n", ""),
        ("seeds = [\"https://shop.example/\"]", "seeds = []"),
        ("seeds = [\"https://shop.example/\"]", "seeds = \"https://shop.example/\""),
        ("https://", "ftp://"),
        ("seeds", "intervall = \"1s\"\nseeds"),
        ("seeds", "name = \"my shop\"\nseeds"),
        ("seeds", "lane = \"fast lane\"\nseeds"),
        ("seeds", "tenant = \"a b\"\nseeds"),
        ("[[page]]", "[pace]\ninterval = 1\n[[page]]"),
        ("[[page]]", "[pace]\ninterval = \"soon\"\n[[page]]"),
        ("[[page]]", "[pace]\nparallel = 0\n[[page]]"),
        ("[[page]]", "[pace]\nrobots = \"obay\"\n[[page]]"),
        ("[[page]]", "[pace]\nwindow = [\"01:00-06:00 Asia/Tokyo\"]\n[[page]]"),
        ("[[page]]", "[scope]\nhosts = [\"*.shop.example\"]\n[[page]]"),
        ("[[page]]", "[scope]\ndeny = [\"cart\"]\n[[page]]"),
        ("[[page]]", "[scope]\nmax_depth = -1\n[[page]]"),
        ("[[page]]", "[fetch]\nmax_body = \"8Mib\"\n[[page]]"),
        ("[[page]]", "[fetch]\naccept_types = []\n[[page]]"),
        ("[[page]]", "[fetch]\ngone_after = 2\n[[page]]"),
        ("[[page]]", "[fetch]\nheaders = { X = 1 }\n[[page]]"),
        ("[[page]]", "[fetch]\nauth_env = \"me:secret\"\n[[page]]"),
        (page, ""),
        ("match = \"/**\"\n", ""),
        ("match = \"/**\"", "match = []"),
        ("match = \"/**\"", "match = \"https://shop.example/\""),
        ("item = true\n", ""),
        ("item = true", "item = 1"),
        ("title = \"h1\"", "title = 1"),
        ("title = \"h1\"", "title = { attr = \"src\" }"),
        ("title = \"h1\"", "title = { css = \"h1\", as = \"prise\" }"),
        ("title = \"h1\"", "title = { css = \"h1\", default = 1, required = true }"),
        ("title = \"h1\"", "title = { css = \"h1\", requierd = true }"),
    ]
    .iter()
    .map(|(from, to)| RIGHT.replacen(from, to, 1))
    .collect();
    for (text, errors) in texts.iter().zip(errors_in(&python, &schema(&data), &texts)) {
        assert!(paced::internals::site::parse(text, "shop.toml").is_err(), "the reader takes\n{text}");
        assert!(!errors.is_empty(), "the schema takes\n{text}");
    }
}

#[test]
fn the_schema_has_descriptions_and_the_defaults_in_force() {
    let printed = Paced::new(["check", "--schema"]).run().expect_code(0).stdout;
    let schema: Value = serde_json::from_str(&printed).expect("JSON");
    for (path, default) in [
        ("/$defs/pace/properties/interval", serde_json::json!("1s")),
        ("/$defs/pace/properties/max_retry_after", "24h".into()),
        ("/$defs/scope/properties/max_depth", 50.into()),
        ("/$defs/fetch/properties/max_body", "8MiB".into()),
        ("/$defs/page/properties/key", "canonical".into()),
        ("/$defs/field/properties/as", "text".into()),
    ] {
        let key = schema.pointer(path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(key["default"], default, "{path}");
        assert!(key["description"].is_string(), "{path}");
    }
    assert_text("site.schema.json", &printed);
    let run = Paced::new(["check", "--schema", "shop"]).run().expect_code(2);
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
}
