"""Whoever writes a plug-in runs this in the plug-in's own tests."""

from on_time import OnTime
from two_choices import TwoChoices

from sim.conformance import assert_conforms


def test_conforms() -> None:
    """The policy and the metric keep all promises of their groups."""
    assert_conforms("selection", TwoChoices)
    assert_conforms("selection", TwoChoices, {"choices": 5, "update_period": "1d"}, seed=2)
    assert_conforms("metric", OnTime)
