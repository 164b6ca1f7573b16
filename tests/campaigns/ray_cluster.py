"""Runs a sweep on a Ray cluster of two nodes, of which one is killed after some seconds.

`python ray_cluster.py SECONDS FLAGS…` ends with the status of `python -m experiments.sweep FLAGS…`.
"""

import subprocess
import sys
import time


def main() -> int:
    """Start the cluster, the sweep, and kill the second node; a sweep with failed points is started again."""
    from ray.cluster_utils import Cluster

    seconds, flags = float(sys.argv[1]), sys.argv[2:]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    lost = cluster.add_node(num_cpus=1)
    command = [sys.executable, "-m", "experiments.sweep", *flags, f"--address={cluster.address}"]
    sweep = subprocess.Popen(command)
    time.sleep(seconds)
    cluster.remove_node(lost, allow_graceful=False)
    status = sweep.wait()
    if status != 0:
        status = subprocess.run(command, check=False).returncode
    cluster.shutdown()
    return status


if __name__ == "__main__":
    sys.exit(main())
