"""Which topics the back end keeps when its capacity is short: B3M and F-B3M (ODS)."""
