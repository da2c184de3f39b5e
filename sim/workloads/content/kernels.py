"""The compiled part of content-based subscriptions and publications. Checked by tests/oracles/targets.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.base.compiled import kernel

FREE, POOL, LOCKED = 0, 1, 2


@kernel
def shuffle_first(items: NDArray[np.int32], among: int, wanted: int, generator: np.random.Generator) -> None:
    """Bring a random choice of `wanted` of the first `among` items to the front, in random order."""
    for k in range(wanted):
        other = k + int(generator.random() * (among - k))
        items[k], items[other] = items[other], items[k]


@kernel
def write_row(
    field: NDArray[np.int32],
    value: NDArray[np.int32],
    start: int,
    pool: NDArray[np.int32],
    shared: int,
    private: int,
    held: NDArray[np.int32],
) -> None:
    """A conjunction of the first `shared` fields of the pool and a private one, fields ascending, with the values `held`."""
    for k in range(shared + 1):
        new = private if k == shared else pool[k]
        place = start + k
        while place > start and field[place - 1] > new:
            field[place] = field[place - 1]
            place -= 1
        field[place] = new
    for place in range(start, start + shared + 1):
        value[place] = held[field[place]]


class Chain(NamedTuple):
    """Conjunctions in subsets: (`indptr`, `field`, `value`) and (`subsets`, `members`; those carried over first) are CSR.

    `used`: the number of values used in each field, the lowest ones; `carried`: how many members each subset has carried over;
    `clamped`: how many sizes were clamped to the fields still available.
    """

    indptr: NDArray[np.int64]
    field: NDArray[np.int32]
    value: NDArray[np.int32]
    used: NDArray[np.int32]
    subsets: NDArray[np.int64]
    members: NDArray[np.int32]
    carried: NDArray[np.int32]
    clamped: int


@kernel
def _fitting(sizes: NDArray[np.int32], longest: int, pooled: int, available: int) -> tuple[int, int]:
    """How many conjunctions of the next sizes fit into a subset (at least one), and the size of the longest."""
    count = 1
    while count < sizes.size:
        longer = max(longest, sizes[count])
        if max(0, longer - 1 - pooled) + count + 1 > available:
            break
        longest = longer
        count += 1
    return count, longest


@kernel
def chain_subsets(
    sizes: NDArray[np.int32], fields: int, values: int, overlap: int, generator: np.random.Generator
) -> Chain:
    """Design perfectly compatible subsets, one after another, of subscriptions with these successive sizes.

    In a subset all members share the pairs of a pool, and each has one private pair whose field no other member uses. A subset
    begins with up to `overlap` members that were new in the previous one: their private fields are locked, their other pairs are in
    the pool. If no new member fits beside them, a subset of only new ones is begun. It ends where the next size would need more
    fields than there are, which keeps the order of the sizes. A field with `values` - 1 values used is no longer available. There
    are fewer conjunctions than sizes if no field is left.
    """
    wanted = sizes.size
    total = np.minimum(sizes, fields).sum()
    indptr = np.zeros(wanted + 1, np.int64)
    field, value = np.empty(total, np.int32), np.empty(total, np.int32)
    private = np.empty(wanted, np.int32)
    subsets = np.zeros(wanted + 1, np.int64)
    members = np.empty(wanted * (1 + min(overlap, fields)), np.int32)
    carried = np.zeros(wanted, np.int32)
    used, held, state = np.zeros(fields, np.int32), np.zeros(fields, np.int32), np.zeros(fields, np.int8)
    pool = np.empty(fields, np.int32)
    done, subset, new_before, clamped = 0, 0, 0, 0
    while done < wanted:
        state[:] = FREE
        pooled, start = 0, subsets[subset]
        carry = min(overlap, new_before)
        recent = np.arange(done - new_before, done).astype(np.int32)
        shuffle_first(recent, new_before, carry, generator)
        for k in range(carry):
            old = recent[k]
            members[start + k] = old
            state[private[old]] = LOCKED
            for pair in range(indptr[old], indptr[old + 1]):
                if field[pair] != private[old] and state[field[pair]] == FREE:
                    state[field[pair]] = POOL
                    held[field[pair]] = value[pair]
                    pool[pooled] = field[pair]
                    pooled += 1
        free = np.flatnonzero((state == FREE) & (used < values - 1)).astype(np.int32)
        if carry and (free.size == 0 or sizes[done] > pooled + free.size):
            new_before = 0
            continue
        if free.size == 0:
            break
        longest = min(sizes[done], pooled + free.size)
        clamped += sizes[done] > longest
        count, longest = _fitting(sizes[done:], longest, pooled, free.size)
        fresh = max(0, longest - 1 - pooled)
        shuffle_first(free, free.size, fresh + count, generator)
        for f in free[:fresh]:
            pool[pooled], held[f] = f, used[f]
            pooled += 1
            used[f] += 1
        for own in free[fresh : fresh + count]:
            size = min(sizes[done], longest)
            held[own] = used[own]
            used[own] += 1
            private[done] = own
            shuffle_first(pool, pooled, size - 1, generator)
            write_row(field, value, indptr[done], pool, size - 1, own, held)
            indptr[done + 1] = indptr[done] + size
            done += 1
        for k in range(count):
            members[start + carry + k] = done - count + k
        carried[subset] = carry
        subset += 1
        subsets[subset] = start + carry + count
        new_before = count
    pairs, rows = indptr[done], subsets[subset]
    ends = indptr[: done + 1], subsets[: subset + 1]
    return Chain(ends[0], field[:pairs], value[:pairs], used, ends[1], members[:rows], carried[:subset], clamped)


@kernel
def grid_rows(
    sizes: NDArray[np.int32], order: NDArray[np.int32], pooled: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Conjunctions as CSR (indptr, field, value) over one pool, the first `pooled` fields in `order`, each with value 0.

    Conjunction i has its private pair in field i mod t of the t others, with value i div t.
    """
    indptr = np.zeros(sizes.size + 1, np.int64)
    for i in range(sizes.size):
        indptr[i + 1] = indptr[i] + sizes[i]
    field, value = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int32)
    held = np.zeros(order.size, np.int32)
    pool, private = order[:pooled].copy(), order[pooled:]
    for i in range(sizes.size):
        own = private[i % private.size]
        held[own] = i // private.size
        shuffle_first(pool, pooled, sizes[i] - 1, generator)
        write_row(field, value, indptr[i], pool, sizes[i] - 1, own, held)
    return indptr, field, value


@kernel
def subset_targets(
    indptr: NDArray[np.int64],
    members: NDArray[np.int32],
    known: NDArray[np.int32],
    reached: NDArray[np.float64],
    match: int,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.int32]:
    """Draw targets of `match` members of one subset each; `reached` has the cumulative weights of the subsets.

    All are equally likely, without those from only the first `known` members of a subset.
    """
    targets = np.empty((count, match), np.int32)
    for i in range(count):
        subset = np.searchsorted(reached, generator.random() * reached[-1], side="right")
        start, size = indptr[subset], indptr[subset + 1] - indptr[subset]
        last = -1
        while last < known[subset]:
            taken = 0
            for k in range(size):
                if generator.random() * (size - k) < match - taken:
                    targets[i, taken] = members[start + k]
                    taken += 1
                    last = k
    return targets


@kernel
def grid_targets(
    take: NDArray[np.float64],
    subscriptions: int,
    match: int,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.int32]:
    """Draw targets of `match` conjunctions of a grid with different private fields.

    `take[f, k]` is the probability that field f has one of the k that are still to be drawn from it and later fields.
    """
    places = take.shape[0]
    targets = np.empty((count, match), np.int32)
    for i in range(count):
        taken = 0
        for place in range(places):
            if taken < match and generator.random() < take[place, match - taken]:
                rows = (subscriptions - place - 1) // places + 1
                targets[i, taken] = place + places * int(generator.random() * rows)
                taken += 1
    return targets


@kernel
def fill_publications(
    target_indptr: NDArray[np.int64],
    targets: NDArray[np.int32],
    indptr: NDArray[np.int64],
    field: NDArray[np.int32],
    value: NDArray[np.int32],
    used: NDArray[np.int32],
    values: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int32], int]:
    """Values (publications, fields) with all pairs of the targets, and elsewhere values that no conjunction requires.

    Also returns the first publication whose targets contradict one another, or -1.
    """
    count = target_indptr.size - 1
    published = np.empty((count, used.size), np.int32)
    for i in range(count):
        for f in range(used.size):
            published[i, f] = used[f] + int(generator.random() * (values - used[f]))
        for k in range(target_indptr[i], target_indptr[i + 1]):
            for pair in range(indptr[targets[k]], indptr[targets[k] + 1]):
                now = published[i, field[pair]]
                if now < used[field[pair]] and now != value[pair]:
                    return published, i
                published[i, field[pair]] = value[pair]
    return published, -1
