"""Whoever writes a policy runs this in the policy's own tests."""

from two_choices import TwoChoices

from sim.policies.conformance import check_selection


def test_conforms() -> None:
    """The policy keeps to what every policy must."""
    check_selection(TwoChoices)
    check_selection(TwoChoices, {"choices": 5, "update_period": "1d"}, seed=2)
