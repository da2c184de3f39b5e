# A CSV file of one's own, with columns of its own names, becomes a workload, runs and a report.
cat > visits.csv <<'CSV'
who,when,lat,lon
ann,2024-05-01 08:00:00,48.85,2.35
ann,2024-05-02 09:30:00,45.76,4.83
ben,2024-05-01 10:00:00,48.86,2.34
ben,2024-05-03 12:00:00,43.30,5.37
cleo,2024-05-01 11:00:00,45.75,4.85
cleo,2024-05-02 18:45:00,48.85,2.36
dan,2024-05-02 07:10:00,43.29,5.38
dan,2024-05-03 21:00:00,45.77,4.84
CSV
./brokersim prepare checkins visits.csv --columns user=who,time=when,latitude=lat,longitude=lon \
  --header --time-format "yyyy-MM-dd HH:mm:ss" --time-zone Europe/Paris --cell 1 --friends 2 --engine in-process --out visits
./brokersim describe visits
cat > visits.toml <<'TOML'
title = "Visits"
replications = 3

[workload]
path = "visits"

[network]
brokers = "cells"

[[variant]]
name = "own cell"
selection = { kind = "location" }

[[variant]]
name = "similar"
selection = { kind = "similarity" }
TOML
./brokersim run visits.toml --out results/visits
./brokersim report results/visits
test -s results/visits/report.html
