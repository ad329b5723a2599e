"""config/prometheus judged by promtool: the rules, the example of a configuration, and each alert at its time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from line import new_line

from commands.main import VERBS
from warcmill.audit.answers import metrics
from warcmill.markers.state import MarkerStore
from warcmill.stores.file import FileStore

FOLDER = Path(__file__).parent.parent.parent / "config" / "prometheus"
RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load((FOLDER / "rules.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
}
NEVER = {"warcmill_backup_end_timestamp_seconds", "warcmill_newest_warc_timestamp_seconds", "warcmill_gaps"}
LONG = 4400  # minutes: three days
# Of an archive that is well. Time begins at 0: what grows by 60 a minute was done just now, what is 0 was done at 0.
WELL = {
    'warcmill_build_info{version="0.1.0"}': "1x{long}",
    "warcmill_health_written_timestamp_seconds": "0+60x{long}",
    "warcmill_newest_warc_timestamp_seconds": "0+60x{long}",
    'warcmill_scan_end_timestamp_seconds{{scan="files.ScanForOutputFiles"}}': "0+60x{long}",
    "warcmill_backup_end_timestamp_seconds": "0+60x{long}",
    'warcmill_free_bytes{{root="store"}}': "99000000000x{long}",
    'warcmill_gaps{{kind="dead seed"}}': "0x{long}",
    'warcmill_up{{kind="engine",name="first"}}': "1x{long}",
}


def promtool(*words: str | Path) -> tuple[int, str]:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_promtool_takes_the_rules_and_the_example() -> None:
    code, printed = promtool("check", "rules", FOLDER / "rules.yaml")
    assert (code, f"{len(RULES)} rules found" in printed) == (0, True), printed
    code, printed = promtool("check", "config", "--syntax-only", FOLDER / "prometheus.yaml")
    assert code == 0, printed


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_waits_has_a_severity_and_names_a_command_that_there_is(alert: str) -> None:
    rule = RULES[alert]
    assert rule["for"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    named = re.findall(r"warcmill ([a-z]+)", rule["annotations"]["description"])
    assert named
    assert set(named) <= {verb for verbs in VERBS.values() for verb in verbs}


def test_promtool_takes_what_a_line_really_writes(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    line.scan()
    written = tmp_path / "warcmill.prom"
    for known in ("absent", "torn", "whole"):
        assert line.warcmill("health", "--prometheus", str(written)).returncode == 0
        if known != "whole":
            now = line.folders["state"] / "status/now.json"
            now.write_bytes(now.read_bytes()[:100]) if known == "torn" else now.unlink()
            text = metrics.read(MarkerStore(FileStore("state", line.folders["state"])))
            assert "warcmill_health_written" not in text
            written.write_text(text)
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=written.read_bytes(), capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), known
    assert [path.name for path in tmp_path.glob("*.prom*")] == ["warcmill.prom"]
    text = written.read_text()
    for name in set(re.findall(r"warcmill_\w+", " ".join(rule["expr"] for rule in RULES.values()))) - NEVER:
        assert f"\n{name}" in text, f"an alert asks for {name}, which nothing writes"


def samples(changed: dict[str, str | None]) -> list[dict[str, str]]:
    """The series of an archive that is well, but for some: None for one that is not there."""
    series = {name.replace("{{", "{").replace("}}", "}"): values for name, values in WELL.items()} | changed
    return [{"series": name, "values": values.format(long=LONG)} for name, values in series.items() if values]


def judged(folder: Path, series: list[dict[str, str]], **tests: Any) -> None:
    document = {
        "rule_files": [str(FOLDER / "rules.yaml")],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, **tests}],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(document), "utf-8")
    code, printed = promtool("test", "rules", folder / "test.yaml")
    assert code == 0, printed


def test_no_alert_fires_or_waits_in_three_days_of_an_archive_that_is_well(tmp_path: Path) -> None:
    looked = [{"expr": "count(ALERTS)", "eval_time": f"{minute}m"} for minute in (0, 100, 2000, LONG)]
    judged(tmp_path, samples({}), promql_expr_test=looked)


HEALTH, BUILD = "warcmill_health_written_timestamp_seconds", 'warcmill_build_info{version="0.1.0"}'
NEWEST, BACKUP = "warcmill_newest_warc_timestamp_seconds", "warcmill_backup_end_timestamp_seconds"
SCAN = 'warcmill_scan_end_timestamp_seconds{scan="files.ScanForOutputFiles"}'
FREE, UNKNOWN = 'warcmill_free_bytes{root="store"}', "The health of the archive was not looked at"
GAPS, UP = 'warcmill_gaps{kind="dead seed"}', 'warcmill_up{kind="engine",name="first"}'


@pytest.mark.parametrize(
    ("alert", "changed", "silent", "fires", "labels", "summary"),
    [
        ("WarcmillNotMeasured", dict.fromkeys([BUILD]), 14, 16, {}, "Nothing is known of the archive"),
        ("WarcmillHealthUnknown", {HEALTH: "0x{long}"}, 89, 92, {}, UNKNOWN),
        ("WarcmillHealthUnknown", {HEALTH: None}, 29, 31, {"version": "0.1.0"}, UNKNOWN),
        ("WarcmillNoNewWarc", {NEWEST: "0x{long}"}, 2939, 2942, {}, "No new WARC for 2d 1h 2m 0s"),
        ("WarcmillScanDidNotRun", {SCAN: "0x{long}"}, 374, 377, {"scan": "files.ScanForOutputFiles"},
         "files.ScanForOutputFiles last ended 6h 17m 0s ago"),
        ("WarcmillBackupLate", {BACKUP: "0x{long}"}, 2939, 2942, {}, "The state was last backed up 2d 1h 2m 0s ago"),
        ("WarcmillNoScanEver", {SCAN: None}, 359, 361, {}, "No scan has ever ended here"),
        ("WarcmillNoBackupEver", {BACKUP: None}, 2879, 2881, {}, "The state was never backed up"),
        ("WarcmillDiskFillsUp", {FREE: "5368709120x{long}"}, 9, 11, {"root": "store"},
         "5GiB are free on the disk of store"),
        ("WarcmillDiskFull", {FREE: "536870912x{long}"}, 1, 3, {"root": "store"},
         "512MiB are free on the disk of store"),
        ("WarcmillGap", {GAPS: "3x{long}"}, 59, 61, {"kind": "dead seed"}, "3 of the kind dead seed need a person"),
        ("WarcmillNoAnswer", {UP: "0x{long}"}, 14, 16, {"kind": "engine", "name": "first"},
         "The engine first does not answer"),
    ],
)  # fmt: skip
def test_an_alert_fires_at_its_time_and_not_before(
    tmp_path: Path,
    alert: str,
    changed: dict[str, str | None],
    silent: int,
    fires: int,
    labels: dict[str, str],
    summary: str,
) -> None:
    rule = RULES[alert]
    annotations = {"summary": summary, "description": rule["annotations"]["description"]}
    firing = {"exp_labels": {**rule["labels"], **labels}, "exp_annotations": annotations}
    judged(
        tmp_path,
        samples(changed),
        alert_rule_test=[
            {"eval_time": f"{silent}m", "alertname": alert, "exp_alerts": []},
            {"eval_time": f"{fires}m", "alertname": alert, "exp_alerts": [firing]},
        ],
    )


def test_every_alert_is_tried() -> None:
    (mark,) = test_an_alert_fires_at_its_time_and_not_before.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in mark.args[1]} == set(RULES)
