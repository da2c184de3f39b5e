# How many messages per second a broker with measured costs can take within a delay.
cat > hub.toml <<'TOML'
title = "One broker"
replications = 2

[workload]
kind = "poisson"
users = 500
topics = 50
change_rate = 0
publication_rate = 3600
horizon = "2s"

[network]
brokers = 1

[brokers.service]
kind = "deterministic"
preset = "light"
TOML
./brokersim capacity hub.toml --vary workload.publication_rate --until "notification_delay_p99 < 5ms" --largest \
  --from 3600 --to 360000 --step 18000 --out results/hub
