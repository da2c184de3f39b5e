# Two swept axes become a heat map in the report, and a table of all points.
./brokersim new sweep.toml --brokers 4 --yes
./brokersim run sweep.toml --set 'sweep.network.brokers=[4, 8]' --set 'sweep.workload.publication_rate=[1, 4]' --replications 2 --out results/heat
./brokersim report results/heat
grep -q heat-notification_delay results/heat/report.html
./brokersim compare results/heat --export points.csv
test "$(wc -l < points.csv)" -gt 4
