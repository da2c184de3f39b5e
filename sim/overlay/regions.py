"""Round-trip times between and inside regions, as given in a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from pydantic import field_validator

from sim import plugins
from sim.base.errors import nearest, refuse
from sim.base.units import Duration, Sigma, format_duration
from sim.base.validation import nested
from sim.overlay.latency import LatencySetting
from sim.overlay.pair_times import PairTimes
from sim.overlay.sites import Sites


class RegionLatency:
    """The same round-trip time between all brokers of two regions, and between all brokers of one."""

    class Parameters(plugins.Parameters):
        round_trips: dict[str, dict[str, Duration]]
        """By region and region, such as `{ eu = { eu = "2ms", us = "85ms" }, us = { us = "3ms" } }`; given once, both ways."""
        jitter: Sigma = 0.0
        """σ of a lognormal factor with mean 1 on every hop; messages on one link keep their order."""

        @field_validator("round_trips")
        @classmethod
        def _same_both_ways(cls, table: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
            wrong = [
                (
                    (one, other),
                    f"expected {format_duration(back)}, as from '{other}' to '{one}', found {format_duration(time)}",
                )
                for one, row in table.items()
                for other, time in row.items()
                if one > other and (back := table.get(other, {}).get(one, time)) != time
            ]
            if wrong:
                raise nested(wrong)
            return table

        def unfit(self, _brokers: int | None, sites: Sites | None) -> str | None:
            if sites is None or sites.regions is None:
                return (
                    'network.latency: kind "regions" needs the regions of brokers, which these do not have '
                    "(allowed: network.brokers = a CSV file with the columns broker and region)"
                )
            brokers, table = Counter(sites.regions), self.round_trips
            missing = [
                f"'{other}' and '{one}'" if other != one else f"brokers of '{one}'"
                for one, other in _pairs(sorted(brokers))
                if _time(table, one, other) is None and (other != one or brokers[one] > 1)
            ]
            if not missing:
                return None
            return f"network.latency.round_trips: no time between {', '.join(missing)}{_hint(sorted(brokers), table)}"

    notes = ()

    def __init__(self, parameters: Parameters, setting: LatencySetting) -> None:
        """Raises ScenarioError where brokers have no regions, or a pair of regions has no time."""
        refuse(parameters.unfit(len(setting.sites), setting.sites))
        regions = setting.sites.regions
        assert regions is not None
        names = sorted(set(regions))
        times = np.zeros((len(names), len(names)))
        for one, other in _pairs(names):
            i, j = names.index(one), names.index(other)
            times[i, j] = times[j, i] = _time(parameters.round_trips, one, other) or 0.0
        at = [names.index(region) for region in regions]
        self.round_trips = PairTimes.of_groups(np.array(at), times)
        self.jitter = parameters.jitter


def _pairs(names: list[str]) -> Iterator[tuple[str, str]]:
    """Each name with itself and all before it."""
    return ((one, other) for i, one in enumerate(names) for other in names[: i + 1])


def _time(table: Mapping[str, Mapping[str, float]], one: str, other: str) -> float | None:
    return table.get(one, {}).get(other, table.get(other, {}).get(one))


def _hint(regions: list[str], table: Mapping[str, Mapping[str, float]]) -> str:
    known = sorted({*table, *(name for row in table.values() for name in row)})
    near = {name: nearest(name, known) for name in regions if name not in known}
    hints = [f"did you mean '{other}' by '{name}'?" for name, other in near.items() if other]
    return "".join(f", {hint}" for hint in hints) + f" (regions there: {', '.join(known) or 'none'})"
