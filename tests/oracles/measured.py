"""Measured round-trip times, read and repaired in plain Python: one pair at a time."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Mapping
from pathlib import Path

FIBRE = 200_000.0  # km/s


def read_pairs(path: Path) -> dict[tuple[str, str], float]:
    """Average round-trip times (ms) by source and destination."""
    with gzip.open(path, "rt") as file:
        return {(row["source"], row["destination"]): float(row["avg"]) for row in csv.DictReader(file)}


def read_places(path: Path) -> dict[str, tuple[float, float]]:
    with path.open() as file:
        return {row["id"]: (float(row["latitude"]), float(row["longitude"])) for row in csv.DictReader(file)}


def km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """By the spherical law of cosines on the mean Earth radius, as vectors."""

    def vector(place: tuple[float, float]) -> tuple[float, float, float]:
        phi, lam = map(math.radians, place)
        return math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)

    (x, y, z), (u, v, w) = vector(a), vector(b)
    cross = math.hypot(y * w - z * v, z * u - x * w, x * v - y * u)
    return 6371.0088 * math.atan2(cross, x * u + y * v + z * w)


class Measured:
    """The problems found among hosts with places, and the times (ms) of pairs after a line has been fitted."""

    def __init__(self, times: Mapping[tuple[str, str], float], places: Mapping[str, tuple[float, float]]) -> None:
        self.places = places
        hosts = sorted({host for pair in times for host in pair} & places.keys(), key=int)
        self.mean, self.missing, self.impossible, sound = {}, [], [], []
        for i, a in enumerate(hosts):
            for b in hosts[i + 1 :]:
                known = [times[pair] for pair in ((a, b), (b, a)) if pair in times]
                if not known:
                    self.missing.append((a, b))
                    continue
                self.mean[a, b] = sum(known) / len(known)
                if self.mean[a, b] / 1000 < self.light(a, b):
                    self.impossible.append((a, b))
                else:
                    sound.append((km(places[a], places[b]), self.mean[a, b]))
        n = len(sound)
        x, y = sum(x for x, _ in sound) / n, sum(y for _, y in sound) / n
        self.per_km = sum((a - x) * (b - y) for a, b in sound) / sum((a - x) ** 2 for a, _ in sound)
        self.base = y - self.per_km * x

    def light(self, a: str, b: str) -> float:
        return 2 * km(self.places[a], self.places[b]) / FIBRE

    def time(self, a: str, b: str) -> float:
        """The time (ms) between two hosts, fitted where it is missing or impossible."""
        a, b = sorted((a, b), key=int)
        if (a, b) in self.mean and (a, b) not in self.impossible:
            return self.mean[a, b]
        return max(self.base + self.per_km * km(self.places[a], self.places[b]), 1000 * self.light(a, b))

    def nearest(self, place: tuple[float, float], hosts: list[str]) -> str:
        return min(hosts, key=lambda host: (km(self.places[host], place), int(host)))
