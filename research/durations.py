"""How long experiments take.

Rounded from the runs with the results in docs/experiments: 5 seeds and size 1,
one process beside another on two cores. For the recorded workloads, summed from what single
policies took.
"""

from collections.abc import Mapping

TAKES: Mapping[str, str] = {
    "tls-motivation": "seconds",
    "tls-chain-tree": "10 s",
    "tls-lodfa": "10 s",
    "tls-slowdown": "2 min",
    "tls-response": "8 min",
    "tls-five-q21": "30 s",
    "tls-measured": "2 min",
    "tls-accuracy": "5 min",
    "relaqs-time": "2 min",
    "relaqs-crossing": "3 min",
    "relaqs-metric": "20 s",
    "relaqs-two-cores": "2 min",
    "s3-merged": "20 s",
    "s3-sparse": "1 min",
    "s3-dense": "1 min",
    "s3-heavy": "30 s",
    "s3-blocks": "1 min",
    "s3-selection": "40 s",
    "s3-parsing": "40 s",
    "tumm-benchmarks": "20 s",
    "tumm-fifo-fair": "seconds",
    "tumm-mixed": "20 s",
    "htumm-heterogeneous": "30 s",
    "htumm-tpch": "10 s",
    "predictors": "1 min",
    "posum-scores": "10 min",
    "posum-usage": "3 min",
    "posum-provisioning": "8 min",
    "online-coverage": "10 min",
    "recorded-streams": "hours",
    "recorded-days": "hours",
}
