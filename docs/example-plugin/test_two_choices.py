"""Whoever writes a plug-in runs this in the plug-in's own tests."""

from two_choices import TwoChoices

from sim.conformance import assert_conforms


def test_conforms() -> None:
    """The policy keeps all promises of its group."""
    assert_conforms("selection", TwoChoices)
    assert_conforms("selection", TwoChoices, {"choices": 5, "update_period": "1d"}, seed=2)
