//! What a shell and `man` are given: every verb is in it.

use crate::support::*;

/// The verbs as `--help` lists them.
fn verbs() -> Vec<String> {
    let help = Paced::new(["--help"]).run().expect_code(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let verbs: Vec<String> =
        verbs.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(verbs.contains(&"crawl".to_owned()), "{help}");
    verbs
}

#[test]
fn each_shell_completes_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Paced::new(["completions", shell]).run().expect_code(0).stdout;
        for verb in verbs() {
            assert!(script.contains(&verb), "{shell}: no {verb}");
        }
        assert!(script.contains("--give-up") || script.contains("l give-up"), "{shell}: no options");
    }
    let run = Paced::new(["completions", "cmd"]).run().expect_code(2);
    assert!(run.stderr.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{}", run.stderr);
}

#[test]
fn the_manual_has_a_section_a_verb_and_tells_common_options_once() {
    let page = Paced::new(["man"]).run().expect_code(0).stdout;
    for verb in verbs().iter().filter(|verb| *verb != "help") {
        let title = format!(".SH \"PACED {}\"\n", verb.to_uppercase());
        assert_eq!(page.matches(&title).count(), 1, "{verb}");
    }
    assert_eq!(
        page.matches("\\fB\\-\\-frontier\\fR").count(),
        1 + page.matches("[\\fB\\-\\-frontier\\fR]").count()
    );
    assert!(
        page.contains("\n  paced crawl books quotes \\-\\-workers 20 \\-\\-deadline 10m\n"),
        "examples keep their lines"
    );
}

#[test]
fn verbs_below_a_verb_have_their_options_in_the_manual() {
    let page = Paced::new(["man"]).run().expect_code(0).stdout;
    let titles =
        ["", " LIST", " SHOW", " REVIVE", " DROP"].map(|verb| format!("\n.SH \"PACED DEAD{verb}\"\n"));
    let places: Vec<Option<usize>> = titles.iter().map(|title| page.find(title)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(page.contains("\\fBpaced dead revive\\fR [\\fB\\-\\-stage\\fR]"), "{page}");
    assert!(
        page.contains("paced queue <SITE> list [OPTIONS]"),
        "where a verb below another comes behind SITE: {page}"
    );
}

#[test]
fn every_page_that_a_page_refers_to_is_written() {
    let data = TempData::new();
    let folder = data.file("man1");
    Paced::new(["man", "--dir"]).arg(&folder).run().expect_code(0);
    let reference = regex::Regex::new(r"paced[a-z\\-]*\(1\)").expect("a pattern");
    let mut met = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the pages") {
        let page = std::fs::read_to_string(entry.expect("a page").path()).expect("a page");
        for name in reference.find_iter(&page) {
            let name = name.as_str().replace('\\', "").replace("(1)", ".1");
            assert!(folder.join(&name).is_file(), "no {name}");
            met.push(name);
        }
    }
    assert!(met.contains(&"paced-dead-list.1".to_owned()), "{met:?}");
    let page = data.read("man1/paced-dead-list.1");
    assert!(page.contains("\\fB\\-\\-status\\fR") && page.contains(".SH EXAMPLES\n"), "{page}");
    assert!(!page.contains("\\-\\-frontier"), "{page}");
}

#[test]
fn the_manual_can_be_a_page_a_verb() {
    let data = TempData::new();
    let folder = data.file("man1");
    let run = Paced::new(["man", "--dir"]).arg(&folder).run().expect_code(0);
    assert_eq!(run.stdout, "");
    for verb in verbs().iter().filter(|verb| *verb != "help") {
        let page = data.read(&format!("man1/paced-{verb}.1"));
        assert!(page.contains(&format!("paced {verb}")) && page.contains(".SH EXAMPLES\n"), "{page}");
    }
    assert!(data.read("man1/paced.1").contains("\\fB\\-\\-frontier\\fR"));
    let file = data.write("file", "");
    let run = Paced::new(["man", "--dir"]).arg(file).run().expect_code(1);
    assert!(run.stderr.contains("name a folder to write to"), "{}", run.stderr);
}
