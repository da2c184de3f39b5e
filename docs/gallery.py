"""The gallery: docs/gallery.md, with a picture for each shipped scenario, drawn from its results.

Run in the project's folder: `python -m docs.gallery` writes the page, and `python -m docs.gallery NAME …` runs these scenarios as
they are shipped (`all`: every one that the gallery draws by itself), draws their pictures, and writes the page.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import sim
from analysis.charts import Figure, save_figure
from analysis.comparison import variants_of
from analysis.figures import delays, intervals
from analysis.sweeps.axes import axes_of
from analysis.sweeps.figures import line_charts

HERE = Path(__file__).parent
PAGE = HERE / "gallery.md"
PICTURES = HERE / "images" / "gallery"
WIDTH = 640
TEXTS = PICTURES / "texts.json"
"""What the pictures show, by scenario."""

DRAWN = {
    "quickstart": "broker_subscription_changes",
    "sweep": "broker_subscription_changes",
    "three-regions": "delay",
    "content": "notification_overhead",
    "content/targets": "notification_overhead",
    "dynatops/flooding": "notification_overhead",
    "dynatops/table-2": "notification_delay",
    "overlays/examples": "maximum_degree",
    "overlays/rendezvous": "notification_delay",
    "what-if/bad-networks": "lost",
    "what-if/connection-storm": "lost_joining",
    "what-if/growing": "moved_users",
    "what-if/hot-topic": "notification_delay",
    "what-if/mesh-degree": "messages_per_publication",
    "what-if/node-death": "user_unavailability",
    "what-if/offline-fleet": "catch_up_time",
    "what-if/overlay-churn": "delivery_ratio",
    "what-if/owners-broadcast-mesh": "messages_per_publication",
    "what-if/reconnect-storm": "connection_attempts",
    "what-if/region-parted": "delivery_ratio",
    "what-if/regions": "notification_delay",
    "what-if/retained-configuration": "retained_delay",
    "what-if/rolling-drain": "user_unavailability",
    "what-if/shared-workers": "user_notification_delay",
    "what-if/slow-consumer": "user_notification_delay",
    "what-if/window-by-distance": "user_notification_delay",
}
"""The metric in the picture of each scenario that is drawn here; "delay" for the distribution of delays."""
SMALLER = {"dynatops/flooding": ("workload.users=2000", "horizon=24h")}
"""What is overridden for the picture of a scenario that runs for long as it is shipped."""
REPRODUCED = {
    "dynatops/clusters": "dynatops/charts/clusters-notification-delay-against-static-0",
    "dynatops/fig-10": "dynatops/charts/fig-10a-delay-saved-0",
    "dynatops/fig-5": "dynatops/charts/fig-5a-share-of-pairs-0",
    "dynatops/fig-6abf": "dynatops/charts/fig-6b-load-stddev-0",
    "dynatops/fig-6cde": "dynatops/charts/fig-6c-handovers-0",
    "dynatops/fig-7": "dynatops/charts/fig-7c-notification-overhead-0",
    "dynatops/fig-8": "dynatops/charts/fig-8a-notification-delay-0",
    "dynatops/fig-9ab": "dynatops/charts/fig-9a-notification-delay-0",
    "dynatops/fig-9cd": "dynatops/charts/fig-9c-notification-delay-0",
    "dynatops/publication-rate": "dynatops/charts/publication-rate-reconfigurations-0",
    "ods/capacity": "ods/charts/fig-1-satisfied-0",
    "overlays/drift": "overlays/charts/drift-edges-against-rebuilt-0",
    "overlays/interests": "overlays/charts/fig-1a-average-degree-0",
    "overlays/k-sweep": "overlays/charts/k-sweep-maximum-degree-0",
}
"""The picture of scenarios whose results are kept with the reproductions."""
_PARTS = {
    "": ("To begin with", "What there is to compare: brokers, users, overlays, content."),
    "what-if": ("What if", "Questions about load and faults; [their answers](what-if.md)."),
    "dynatops": ("DYNATOPS", "The figures of the paper; [how it is interpreted](dynatops.md)."),
    "ods": ("Offloading", "What a back end of limited capacity keeps; [how it is interpreted](offloading.md)."),
    "overlays": ("Topic-connected overlays", "Designs of overlays, beside each other; [their claims](reproductions.md)."),
    "content": ("Subscriptions by content", "[Generated](content.md) for chosen targets."),
}  # fmt: skip


def draw_picture(name: str, folder: Path) -> Figure:
    """Run a shipped scenario in a folder, and draw its picture."""
    scenario, metric = sim.copy_scenario(name, folder / "scenario")[0], DRAWN[name]
    results = sim.run(scenario, folder / "results", overrides=SMALLER.get(name, ()))
    if metric == "delay":
        chart = delays(results)[0]
    elif len(results.points) > 1:
        chart = next(line_charts(results.runs, axes_of(results), [metric], variants_of(results)))
    else:
        chart = intervals(results, [metric])[0]
    PICTURES.mkdir(parents=True, exist_ok=True)
    save_figure(chart, picture_of(name), WIDTH)
    return chart


def picture_of(name: str) -> Path:
    """The file of a scenario's picture, which may not be there."""
    kept = REPRODUCED.get(name)
    return HERE / "reproductions" / f"{kept}.svg" if kept else PICTURES / f"{name.replace('/', '-')}.svg"


def page() -> str:
    """The page: a section for each folder of scenarios, and an entry for each of them, with its picture where it has one."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    scenarios, texts = sim.list_scenarios(), json.loads(TEXTS.read_text(encoding="utf-8"))
    yield "# Gallery of scenarios\n"
    yield (
        "All scenarios that are shipped, each with a result of the command shown, or of the reproduction of a paper.\n"
        "`brokersim scenarios copy NAME` puts one into your folder, where you can change it.\n"
    )
    for part, (title, about) in _PARTS.items():
        yield f"## {title}\n\n{about}\n"
        own = [name for name in scenarios if name.rpartition("/")[0] == part]
        for name in sorted(own, key=lambda name: not picture_of(name).is_file()):
            yield from _entry(name, scenarios[name], texts.get(name, ""))


def _entry(name: str, question: str, said: str) -> Iterator[str]:
    yield f"### {name}\n\n{question}\n"
    picture, file = picture_of(name), name.rpartition("/")[2]
    if picture.is_file():
        description = said or _reproduced(picture)
        yield f"![{description}]({picture.relative_to(HERE).as_posix()})\n"
        about = re.split(r"[.;:] |, at most: ", description, maxsplit=1)[0]
        yield f"Shown: {about[0].lower()}{about[1:]}. To run it:\n"
    else:
        yield "There is no picture, since the scenario needs data that you download; the file says how. To run it:\n"
    workload = " --workload FOLDER" if _needs_data(name) else ""
    overrides = "".join(f" --set {override}" for override in SMALLER.get(name, ()))
    yield f"    brokersim scenarios copy {name}\n    brokersim run {file}.toml{workload}{overrides}\n"


def _needs_data(name: str) -> bool:
    content = tomllib.loads((HERE.parent / "scenarios" / f"{name}.toml").read_text(encoding="utf-8"))
    return bool(content["workload"].get("kind") == "prepared")


def _reproduced(picture: Path) -> str:
    """What a picture shows, as the page of its reproduction says."""
    readme = (picture.parents[1] / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"!\[([^\]]*)\]\(charts/{picture.name}\)", readme)
    assert found, picture
    return found[1]


def main(names: list[str]) -> None:
    """Draw the pictures of scenarios, and write the page."""
    texts = json.loads(TEXTS.read_text(encoding="utf-8")) if TEXTS.is_file() else {}
    for name in DRAWN if names == ["all"] else names:
        with tempfile.TemporaryDirectory() as folder:
            chart = draw_picture(name, Path(folder))
        texts[name] = chart.description
        print(name, chart.name, picture_of(name).stat().st_size, flush=True)
        TEXTS.write_text(json.dumps(texts, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
