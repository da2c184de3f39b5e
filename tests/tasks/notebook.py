# A comparison without a file, as in a notebook.
import sim

scenario = sim.Scenario(
    workload={"kind": "poisson", "users": 50, "topics": 10, "horizon": "2h"}, network={"brokers": 6}
)
for kind in ("static", "similarity"):
    scenario = scenario.variant(kind, selection={"kind": kind})
results = sim.run(scenario, "results/notebook")
assert "<table>" in results._repr_html_()
assert len(sim.compare("results/notebook", metrics=["load_jain"]).table) == 2
print(sim.Simulation(scenario, "similarity").until("1h").brokers[["name", "users"]])
