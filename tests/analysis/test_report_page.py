"""The content of the report, read from its HTML; its figures recomputed from the result files by pandas and scipy."""

from __future__ import annotations

import html
import json
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from fake_results import write_results
from report_numbers import Page, assert_numbers_of_files, body, interval, rows_of

from analysis.formatting import describe
from analysis.report import render_report, write_report
from sim.base.errors import ResultsError
from sim.experiments.results import load_results
from sim.workloads.synthetic.mobility import MobilityWorkload


def test_the_tables_numbers_are_those_of_the_result_files(tmp_path: Path) -> None:
    page = render_report(load_results(write_results(tmp_path)), [])
    assert_numbers_of_files(
        page, tmp_path, "static", ["broker_subscription_changes", "notification_delay", "load_stddev"]
    )


def test_scalars_follow_from_the_windows_after_the_warm_up(tmp_path: Path) -> None:
    """What the page says of a metric agrees with the sums of the time series that it draws."""
    results = load_results(write_results(tmp_path))
    found = rows_of(body(render_report(results, [])))["subscription overhead"][1]
    totals = []
    for run in results.runs.query("variant == 'static'")["run"]:
        series = pd.read_parquet(tmp_path / "runs" / run / "timeseries.parquet")
        totals.append(series.loc[~series["warm_up"], "subscription_overhead"].sum())
    assert found == " ".join(describe(interval(pd.Series(totals))))


def test_the_page_says_what_was_run(tmp_path: Path) -> None:
    page = body(render_report(load_results(write_results(tmp_path)), []))
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    for said in (
        "seed 7",
        "replications 5",
        "version brokersim 0.1.0",
        "origin 2010-05-01T00:00:00Z",
        "horizon 1 d",
        "users 1,200",
        "generator checkins generator: bounding box [30, -126, 50, -66] ° generator: size 100 bytes generator: friends 4",
        "quarantined: null_island 7",
        "quarantined: bad_time 3",
        "checkins.tsv.gz 1.235 MB cdcd",
        "brokersim run scenario.toml --workload WORKLOAD --out RESULTS",
        "marked as better or worse where significant at 5 % after Holm's correction for 2 comparisons",
        "notification_delay (s)",
        "Not defined in these runs:",
    ):
        assert said in text
    assert '<html lang="en">' in page
    assert "<title>Three ways to choose a broker</title>" in page


def test_parameters_of_a_generator_have_their_units(tmp_path: Path) -> None:
    results = load_results(write_results(tmp_path))
    made = MobilityWorkload.Parameters(users=40).model_dump(mode="json")
    results.manifest["workload"]["generator"] = {"name": "mobility", **made}
    text = " ".join(re.sub(r"<[^>]+>", " ", render_report(results, [])).split())
    for said in ("users 40", "horizon 92 d", "gap 10 h", "gap sigma 1.3", "city radius 20.0 km", "size 100 bytes"):
        assert f"generator: {said}" in text


def test_the_page_asks_nothing_of_a_network(tmp_path: Path) -> None:
    page = body(render_report(load_results(write_results(tmp_path))))
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import""", page)


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    write_results(tmp_path)
    assert render_report(load_results(tmp_path)) == render_report(load_results(tmp_path))


def test_names_cannot_break_out_of_their_place(tmp_path: Path) -> None:
    evil = "</script><script>alert('1')</script>&amp;"
    results = write_results(tmp_path, title=evil, topic=evil, variants=(evil, '"> <b>'))
    page = render_report(load_results(results))
    assert "<script>alert" not in page
    assert page.count("<script") - 2 == page.count('<script type="application/json"')
    assert f"<h1>{html.escape(evil, quote=False).replace(chr(39), '&#39;')}</h1>" in page
    Page(body(page))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"replications": 1}, "There is one replication"),
        ({"variants": ("base",)}, "<strong>base:</strong>"),
        ({"overrides": {"subscription_overhead": 7}}, "no variance"),
        ({"overrides": {"notification_delay": None}}, "undefined"),
        ({"overrides": {"notification_overhead": 0}}, "<strong>0</strong>"),
        ({"ring": False, "places": False}, "by hops below the root"),
        ({"warm_up": 0, "brokers": 1200}, "of 1,200 brokers subscribe"),
        ({"failed": [{"variant": "a", "replication": 2, "reason": "KeyError: 7"}]}, "1 of 7 runs failed"),
    ],
    ids=str,
)
def test_edge_cases_are_said(case: dict[str, object], said: str, tmp_path: Path) -> None:
    page = body(render_report(load_results(write_results(tmp_path, **{"replications": 2, **case}))))
    assert said in page
    assert "nan" not in re.sub(r"<[^>]+>", " ", page).lower().split()
    Page(page)


def test_the_scenario_in_the_page_is_the_scenario_that_was_run(tmp_path: Path) -> None:
    page = render_report(load_results(write_results(tmp_path)), [])
    text = re.search(r"every default filled in</summary>\s*<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)
    assert text
    scenario = tomllib.loads(html.unescape(text[1]))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    variants = {variant.pop("name"): variant for variant in scenario.pop("variant")}
    assert scenario.pop("report") == manifest["report"]
    assert scenario == manifest["scenario"]
    assert {name: {**scenario, **variant} for name, variant in variants.items()} == manifest["variants"]


def test_no_page_without_a_single_run(tmp_path: Path) -> None:
    write_results(tmp_path, failed=[{"variant": "static", "replication": 0, "reason": "KeyError: 7"}])
    pd.read_parquet(tmp_path / "runs.parquet").iloc[:0].to_parquet(tmp_path / "runs.parquet")
    with pytest.raises(ResultsError, match=r"no run finished.*static, replication 0: KeyError: 7"):
        write_report(load_results(tmp_path), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_page_is_written_in_full_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = load_results(write_results(tmp_path, variants=("base",)))
    page = tmp_path / "pages" / "report.html"
    write_report(results, page, [])
    before = page.read_text()

    def no_space(self: Path, content: bytes) -> int:
        self.open("x").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(ResultsError, match=r"report\.html: cannot be written \(No space left on device\)"):
        write_report(results, page, [])
    assert page.read_text() == before
    assert list(page.parent.iterdir()) == [page]


def test_the_page_begins_with_links_to_all_of_its_sections(tmp_path: Path) -> None:
    page = render_report(load_results(write_results(tmp_path)), [])
    contents, _, rest = page.partition("</nav>")
    links = re.findall(r'<a href="#([^"]+)">', contents)
    assert links == re.findall(r'<h2 id="([^"]+)">', rest.partition("<script")[0])
    assert len(links) > 3
