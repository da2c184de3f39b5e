"""The tests that should catch changes by file, cheapest first, and equivalent mutants."""

from __future__ import annotations

LEFT_OUT = (
    "sim/workloads/traces/",  # Spark starts for almost every test
    "sim/experiments/engines/spark",  # likewise
)

_PROMISES = "tests/test_conformance.py", "tests/test_broken_plugins.py"
_OFFLOADING = "tests/policies/test_offloading_problem.py", "tests/policies/test_offloading_greedy.py"
_RECONFIGURATION = "tests/policies/test_reconfiguration_cost.py", "tests/policies/test_reconfiguration_greedy.py"
_DESIGNS = tuple(f"tests/overlay/test_topic_connected{name}.py" for name in ("", "_bounds", "_repair"))
_RUNS = tuple(f"tests/experiments/test_{name}.py" for name in ("store", "resuming", "rounds"))
_BROKERS = tuple(f"tests/brokers/test_{name}.py" for name in ("semantics", "folded", "against_oracle"))

TESTS: dict[str, tuple[str, ...]] = {
    "sim/plugins": _PROMISES,
    "sim/conformance/": _PROMISES,
    "sim/overlay/promises": _PROMISES,
    "sim/policies/promises": _PROMISES,
    "sim/workloads/promises": _PROMISES,
    "sim/overlay/": (
        "tests/overlay/test_trees.py",
        "tests/overlay/test_chord.py",
        "tests/overlay/test_source_trees.py",
    ),
    "sim/overlay/broadcast": ("tests/overlay/test_full_mesh_and_star.py",),
    "sim/overlay/chord": ("tests/overlay/test_chord.py", "tests/overlay/test_trees.py"),
    "sim/overlay/edges": ("tests/overlay/test_edges.py",),
    "sim/overlay/export": ("tests/experiments/test_export.py",),
    "sim/overlay/floods": ("tests/brokers/test_flooding.py", "tests/overlay/test_topic_connected_geometry.py"),
    "sim/overlay/full_mesh": ("tests/overlay/test_full_mesh_and_star.py",),
    "sim/overlay/geographic": ("tests/overlay/test_geographic.py",),
    "sim/overlay/geometry": (
        "tests/overlay/test_trees.py",
        "tests/overlay/test_chord.py",
        "tests/overlay/test_full_mesh_and_star.py",
        "tests/overlay/test_topic_connected_geometry.py",
    ),
    "sim/overlay/graph": ("tests/overlay/test_graph.py", "tests/overlay/test_source_trees.py"),
    "sim/overlay/latency": ("tests/overlay/test_latency.py", "tests/overlay/test_measured.py"),
    "sim/overlay/measured": ("tests/overlay/test_measured.py",),
    "sim/overlay/owner_shard": ("tests/overlay/test_full_mesh_and_star.py",),
    "sim/overlay/path_kernels": ("tests/overlay/test_source_trees.py", "tests/overlay/test_graph.py"),
    "sim/overlay/prefix": ("tests/overlay/test_tapestry.py",),
    "sim/overlay/regions": ("tests/overlay/test_regions.py",),
    "sim/overlay/sites": (
        "tests/overlay/test_sites.py",
        "tests/overlay/test_latency.py",
        "tests/scenario/test_scenario.py",
    ),
    "sim/overlay/star": ("tests/overlay/test_full_mesh_and_star.py",),
    "sim/overlay/tapestry": ("tests/overlay/test_tapestry.py",),
    "sim/overlay/topic_connected/": _DESIGNS,
    "sim/overlay/trees": (
        "tests/overlay/test_trees.py",
        "tests/overlay/test_chord.py",
        "tests/overlay/test_tapestry.py",
    ),
    "sim/overlay/topic_connected/bounds": ("tests/overlay/test_topic_connected_bounds.py",),
    "sim/overlay/topic_connected/geometry": ("tests/overlay/test_topic_connected_geometry.py",),
    "sim/overlay/topic_connected/graphs": ("tests/overlay/test_topic_connected_graphs.py",),
    "sim/overlay/topic_connected/repair": (
        "tests/overlay/test_topic_connected_repair.py",
        "tests/overlay/test_topic_connected_geometry.py",
    ),
    "sim/policies/": ("tests/test_conformance.py",),
    "sim/policies/offloading/": _OFFLOADING,
    "sim/policies/offloading/bound": ("tests/policies/test_offloading_bounds.py",),
    "sim/policies/offloading/controls": (*_OFFLOADING, "tests/test_conformance.py"),
    "sim/policies/offloading/curve": ("tests/cli/test_solve_offloading.py",),
    "sim/policies/offloading/enumeration": ("tests/policies/test_offloading_bounds.py",),
    "sim/api/offloading_problems": ("tests/cli/test_solve_offloading.py",),
    "sim/policies/offloading/portfolio": ("tests/policies/test_offloading_portfolio.py",),
    "sim/policies/offloading/warm_start": (*_OFFLOADING, "tests/policies/test_offloading_portfolio.py"),
    "sim/policies/reconfiguration/": _RECONFIGURATION,
    "sim/api/reconfiguration_problems": ("tests/cli/test_solve_reconfiguration.py",),
    "sim/policies/reconfiguration/integer": ("tests/policies/test_reconfiguration_search.py",),
    "sim/policies/reconfiguration/search": ("tests/policies/test_reconfiguration_search.py",),
    "sim/policies/selection/": ("tests/policies/test_selection.py",),
    "sim/workloads/": ("tests/workloads/test_workload.py", "tests/workloads/test_location.py"),
    "sim/workloads/faults/": ("tests/workloads/test_fault_schedules.py", "tests/scenario/test_faults_in_scenarios.py"),
    "sim/workloads/faults/promises": _PROMISES,
    "sim/workloads/content/": ("tests/workloads/test_content_designs.py", "tests/workloads/test_workload.py"),
    "sim/workloads/format/demand": ("tests/workloads/test_demand.py",),
    "sim/workloads/models/event_": ("tests/workloads/test_event_log.py",),
    "sim/workloads/models/follow_": ("tests/workloads/test_follow_log.py",),
    "sim/workloads/models/location": ("tests/workloads/test_location.py", "tests/workloads/test_mobility.py"),
    "sim/workloads/format/mapped": ("tests/workloads/test_mapped.py",),
    "sim/workloads/models/resampling": ("tests/workloads/test_resampling.py", "tests/workloads/test_location.py"),
    "sim/workloads/models/sampling": ("tests/workloads/test_poisson.py", "tests/workloads/test_spotify.py"),
    "sim/workloads/synthetic/checkins": ("tests/workloads/test_mobility.py",),
    "sim/workloads/synthetic/interests": ("tests/workloads/test_interests.py",),
    "sim/workloads/synthetic/mobility": ("tests/workloads/test_mobility.py",),
    "sim/workloads/synthetic/online": ("tests/workloads/test_spotify_sessions.py",),
    "sim/workloads/synthetic/poisson": ("tests/workloads/test_poisson.py",),
    "sim/workloads/synthetic/spotify": ("tests/workloads/test_spotify.py", "tests/workloads/test_spotify_sessions.py"),
    "sim/experiments/": _RUNS,
    "sim/experiments/engines/": ("tests/experiments/test_engines.py",),
    "sim/experiments/export": ("tests/experiments/test_export.py",),
    "sim/experiments/outlook": ("tests/cli/test_plan.py",),
    "sim/experiments/plan": ("tests/scenario/test_sweep.py", "tests/experiments/test_rounds.py", *_RUNS),
    "sim/experiments/precision": ("tests/experiments/test_precision.py", "tests/experiments/test_rounds.py"),
    "sim/experiments/question": ("tests/experiments/test_unchanged.py",),
    "sim/experiments/rounds": ("tests/experiments/test_rounds.py",),
    "sim/experiments/statistics": ("tests/experiments/test_statistics.py",),
    "sim/experiments/warm_up": ("tests/experiments/test_warm_up.py", "tests/experiments/test_rounds.py"),
    "sim/brokers/": _BROKERS,
    "sim/brokers/control/trees": (*_BROKERS, "tests/brokers/test_reconfiguration.py"),
    "sim/brokers/control/courier": (*_BROKERS, "tests/brokers/test_reconfiguration.py"),
    "sim/content/": ("tests/brokers/test_matching.py", "tests/brokers/test_content.py"),
    "sim/brokers/control/offloading": ("tests/brokers/test_offloading.py",),
    "sim/brokers/data/compiled/": tuple(
        f"tests/brokers/test_{name}.py" for name in ("engine_contract", "engines_agree", "content", "flooding")
    ),
    "sim/brokers/data/content": ("tests/brokers/test_content.py",),
    "sim/brokers/data/events": (*_BROKERS, "tests/brokers/test_reconfiguration.py"),
    "sim/brokers/data/rule": (*_BROKERS, "tests/brokers/test_flooding.py", "tests/brokers/test_engine_contract.py"),
    "sim/brokers/control/agreement": ("tests/brokers/test_reconfiguration.py",),
    "sim/brokers/data/folded": (
        *_BROKERS,
        "tests/brokers/test_offloading.py",
        "tests/brokers/test_reconfiguration.py",
    ),
    "sim/brokers/control/protocol": ("tests/brokers/test_reconfiguration.py",),
    "sim/brokers/statistics/receipts": ("tests/brokers/test_folded.py", "tests/brokers/test_offloading.py"),
    "sim/brokers/control/manager": ("tests/brokers/test_reconfiguration.py",),
    "sim/brokers/statistics/record": (*_BROKERS, "tests/brokers/test_offloading.py", "tests/brokers/test_content.py"),
    "sim/brokers/statistics/satisfaction": ("tests/brokers/test_offloading.py",),
    "sim/brokers/fabric/clock": (*_BROKERS, "tests/brokers/test_reconfiguration.py"),
    "sim/brokers/fabric/station": (
        *_BROKERS,
        "tests/brokers/test_overload.py",
        "tests/brokers/test_queueing_theory.py",
    ),
    "sim/brokers/fabric/saturation": ("tests/brokers/test_overload.py",),
    "sim/brokers/control/offloaded_topics": ("tests/brokers/test_offloading.py",),
}

EQUIVALENT: dict[str, str] = {
    "022d4d5e1ced": "a draw equals the bound once in 2^53",
    "012e61306a5a": "sizes beyond are never drawn: their chance is below 1e-30",
    "044a66542cac": "the area of no time is 0",
    "0d299ff16676": "of content no copy asks who wanted its topic: time and memory alone",
    "06e4a706644e": "two readings of the clock are never exactly so far apart",
    "7194194971b1": "two draws are equal once in 2^53",
    "5713e4fde57f": "equal p values are the same after the correction, whichever comes first",
    "253c1090e320": "who wants a topic is a set: counts by user do not depend on its order",
    "08cacf139534": "room is made again as long as there is too little: time alone",
    "0094f783df29": "it is set before it is read",
    "0c1f7cf03644": "which of two components takes the other's label shows in time alone",
}
"""Mutants that nobody can tell from the code as it is, by their keys, and why."""

PICKED: tuple[tuple[str, str, str, str], ...] = (
    (
        "sim/brokers/data/publishers.py",
        "np.searchsorted(times, self._clock.peek())",
        'np.searchsorted(times, self._clock.peek(), side="right")',
        "tests/brokers/test_semantics.py::test_a_change_comes_first_at_its_instant_however_much_was_published_before",
    ),
    (
        "sim/brokers/data/folded.py",
        "time >= following",
        "time > following",
        "tests/brokers/test_semantics.py::test_a_change_comes_first_at_its_instant_however_much_was_published_before",
    ),
    (
        "sim/brokers/data/folded.py",
        "while climbing and climbing[0][0] < until:",
        "while climbing and climbing[0][0] <= until:",
        "tests/brokers/test_offloading.py::test_what_would_leave_its_root_at_the_very_end_has_not_left_it",
    ),
    (
        "sim/brokers/statistics/record_kernels.py",
        "if root_time >= horizon:",
        "if root_time > horizon:",
        "tests/brokers/test_offloading.py::test_what_would_leave_its_root_at_the_very_end_has_not_left_it",
    ),
    (
        "sim/brokers/control/protocol.py",
        "partial(self._answered, transition), to_broker=False)",
        "partial(self._answered, transition))",
        "tests/brokers/test_reconfiguration.py::test_answers_to_the_manager_do_not_queue_at_the_broker_beside_it",
    ),
    (
        "sim/brokers/control/protocol.py",
        "start <= now < end",
        "start < now < end",
        "tests/brokers/test_reconfiguration.py::test_a_manager_is_dead_from_the_instant_on_and_lives_at_the_instant_that_ends_it",
    ),
    (
        "sim/brokers/control/protocol.py",
        "start <= now < end",
        "start <= now <= end",
        "tests/brokers/test_reconfiguration.py::test_a_manager_is_dead_from_the_instant_on_and_lives_at_the_instant_that_ends_it",
    ),
    (
        "sim/brokers/data/events.py",
        "BARRIERS, self._when_rooted)",
        "0, self._when_rooted)",
        "tests/brokers/test_reconfiguration.py::test_a_protocol_that_ends_with_a_period_is_decided_on_at_the_end_of_the_next",
    ),
    (
        "sim/brokers/control/offloading.py",
        "math.fsum(problem.cost) * (1 + slack)",
        "math.fsum(problem.cost)",
        "tests/brokers/test_offloading.py::test_all_the_capacity_is_enough_for_all_topics_however_fractions_are_rounded",
    ),
    (
        "sim/workloads/synthetic/spotify_sessions.py",
        " * (times >= 0)[:, None]",
        "",
        "tests/workloads/test_spotify_sessions.py::test_what_was_released_before_the_beginning_is_not_heard_of",
    ),
    (
        "analysis/sweeps/sobol.py",
        "elif absent.size:",
        "elif absent.size > 1:",
        "tests/analysis/test_sobol.py::test_one_point_without_a_value_is_enough_for_no_index",
    ),
    (
        "analysis/sweeps/sobol.py",
        "points != samples * (2 * len(keys) + 2)",
        "points < samples * (2 * len(keys) + 2)",
        "tests/analysis/test_sobol.py::test_another_number_of_points_than_samples_call_for_is_no_sample",
    ),
    (
        "sim/scenario/sweep.py",
        "2 * len(self.dimensions) + 2 if",
        "2 * len(self.dimensions) + 1 if",
        "tests/scenario/test_sweep.py::test_saltelli_has_blocks_of_a_and_b_and_what_is_between",
    ),
    (
        "sim/scenario/model.py",
        "warm_up >= horizon",
        "warm_up > horizon",
        "tests/scenario/test_scenario.py::test_a_warm_up_as_long_as_the_run_leaves_nothing_to_measure",
    ),
    (
        "sim/simulation.py",
        "scenario.warm_up >= horizon",
        "scenario.warm_up > horizon",
        "tests/test_simulation.py::test_a_scenario_that_does_not_fit_a_workload_with_places",
    ),
)
"""Changes that no test noticed once (file, before, after), and the test that does now."""
