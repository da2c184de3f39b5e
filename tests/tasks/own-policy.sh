# A policy and a metric in a package of one's own, installed, checked and compared.
.venv/bin/pip install ./docs/example-plugin
.venv/bin/python -m pytest -q docs/example-plugin
./brokersim policies
./brokersim run docs/example-plugin/comparison.toml --out results/policy
./brokersim compare results/policy --metric load_jain
