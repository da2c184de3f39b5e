# A sweep on a cluster of Spark: here a temporary one on this machine.
./brokersim run scenarios/sweep.toml --set 'sweep.selection.cluster_size=[2, 5]' --set 'sweep.selection.load_weight=[1.0]' --replications 1 \
  --engine spark --master 'local-cluster[2,1,1024]' --out results/cluster
./brokersim compare results/cluster
