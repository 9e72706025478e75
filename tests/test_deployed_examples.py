"""The dashboard, the alerts and the example of Prometheus's configuration are what they claim."""

import json

import yaml

from tests.test_documentation import ROOT

DEPLOY = ROOT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "moonhook.json").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus" / "moonhook.rules.yml").read_text())
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())


def test_the_dashboard_has_its_rows_and_asks_the_chosen_data_source() -> None:
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

    assert rows == [
        "Traffic",
        "Runs",
        "Queue and schedules",
        "Sandbox",
        "Sessions and PIN",
        "Deliveries and tasks",
        "Process",
    ]
    assert DASHBOARD["templating"]["list"][0]["name"] == "datasource"
    sources = [each["datasource"]["uid"] for panel in panels for each in [panel, *panel["targets"]]]
    assert set(sources) == {"${datasource}"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_no_panel_lies_on_another() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_every_alert_says_what_when_and_how_bad() -> None:
    alerts = [rule for group in RULES["groups"] for rule in group["rules"]]

    assert len(alerts) >= 8
    assert [alert for alert in alerts if not alert["expr"].strip()] == []
    assert {alert["labels"]["severity"] for alert in alerts} == {"page", "ticket"}
    assert [alert for alert in alerts if not alert["annotations"]["summary"]] == []


def test_the_example_asks_metrics_with_a_token_and_loads_the_alerts() -> None:
    [job] = PROMETHEUS["scrape_configs"]

    assert (job["job_name"], job["metrics_path"]) == ("moonhook", "/metrics")
    assert job["authorization"]["type"] == "Bearer"
    assert PROMETHEUS["rule_files"] == ["moonhook.rules.yml"]
