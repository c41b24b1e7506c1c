//! The composition with a dashboard: its files are there, and what they name of each other exists.

use yaml_rust2::{Yaml, YamlLoader};

use crate::{read, root};

const FOLDER: &str = "examples/observability";

#[test]
fn the_composition_mounts_files_that_exist() {
    let compose = parsed("compose.yaml");
    let declared = names(&compose["volumes"]);
    let mut files = 0;
    for name in names(&compose["services"]) {
        for mount in texts(&compose["services"][&*name]["volumes"]) {
            let (source, _) = mount.split_once(':').unwrap();
            let is_file = source.starts_with('.');
            let is_there = root().join(FOLDER).join(source).exists();
            assert!(if is_file { is_there } else { declared.contains(&source.into()) }, "{mount}");
            files += usize::from(is_file);
        }
        for needed in texts(&compose["services"][&*name]["depends_on"]) {
            assert!(!compose["services"][&*needed].is_badvalue(), "{name} needs {needed}");
        }
    }
    assert_eq!(files, 5);
}

#[test]
fn prometheus_scrapes_the_service_and_grafana_asks_prometheus() {
    let (compose, prometheus) = (parsed("compose.yaml"), parsed("prometheus.yml"));
    let service = &compose["services"]["service"];
    let port = service["environment"]["PORT"].as_str().unwrap();
    let target = &prometheus["scrape_configs"][0]["static_configs"][0]["targets"][0];
    assert_eq!(target.as_str().unwrap(), format!("service:{port}"));
    assert_eq!(texts(&prometheus["rule_files"]), ["alerts.yml"]);
    assert!(mounts(&compose, "prometheus", "../services/alerts.yml:/etc/prometheus/alerts.yml:ro"));
    let source = &parsed("provisioning/datasources/prometheus.yml")["datasources"][0];
    assert_eq!(source["url"].as_str(), Some("http://prometheus:9090"));
    let interval = &prometheus["global"]["scrape_interval"];
    assert_eq!(source["jsonData"]["timeInterval"], *interval);
}

#[test]
fn grafana_finds_the_dashboard() {
    let compose = parsed("compose.yaml");
    let provider = &parsed("provisioning/dashboards/lockable.yml")["providers"][0];
    let folder = provider["options"]["path"].as_str().unwrap();
    let board = format!("../services/grafana.json:{folder}/lockable.json:ro");
    assert!(mounts(&compose, "grafana", &board));
    assert!(mounts(&compose, "grafana", "./provisioning:/etc/grafana/provisioning:ro"));
}

#[test]
fn the_service_is_an_example_that_exists() {
    let compose = parsed("compose.yaml");
    let command = compose["services"]["service"]["command"].as_str().unwrap();
    let (_, name) = command.split_once("--example ").unwrap();
    let name = name.split(' ').next().unwrap();
    assert!(read("examples/services/Cargo.toml").contains(&format!("name = \"{name}\"")));
    let example = read(&format!("examples/services/{name}.rs"));
    for variable in ["BIND", "PORT", "LOCKABLE_URL"] {
        assert!(!compose["services"]["service"]["environment"][variable].is_badvalue());
        assert!(example.contains(&format!("\"{variable}\"")), "{name} reads no {variable}");
    }
}

/// The rules are part of the composition, so they have to be YAML too.
#[test]
fn the_alerts_can_be_parsed() {
    let rules = YamlLoader::load_from_str(&read("examples/services/alerts.yml")).unwrap();
    let rules = rules[0]["groups"][0]["rules"].as_vec().unwrap();
    assert!(
        rules
            .iter()
            .all(|rule| rule["alert"].as_str().is_some() && rule["expr"].as_str().is_some())
    );
}

fn parsed(file: &str) -> Yaml {
    let text = read(&format!("{FOLDER}/{file}"));
    let mut documents =
        YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(documents.len(), 1, "{file}");
    documents.remove(0)
}

fn names(table: &Yaml) -> Vec<String> {
    table.as_hash().unwrap().keys().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn texts(list: &Yaml) -> Vec<String> {
    let list = list.as_vec().into_iter().flatten();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn mounts(compose: &Yaml, service: &str, mount: &str) -> bool {
    texts(&compose["services"][service]["volumes"]).iter().any(|it| it == mount)
}
