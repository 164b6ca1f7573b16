"""Run a program on a Ray cluster of two nodes, and kill one node after some seconds.

`python ray_cluster.py SECONDS PROGRAM FLAGS…` ends with the status of `python -m experiments.PROGRAM FLAGS…`, and
prints `hit` if the program was still running when the node was killed.
"""

import subprocess
import sys
import time

ADDRESS = {"sweep": "address", "prepare_data": "ray_address"}


def main() -> int:
    """Start the cluster and the program, and kill the second node; a program that fails is started again."""
    from ray.cluster_utils import Cluster

    seconds, program, *flags = sys.argv[1:]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    lost = cluster.add_node(num_cpus=1)
    address = f"--{ADDRESS[program]}={cluster.address}"
    command = [sys.executable, "-m", f"experiments.{program}", *flags, "--runner=ray", address]
    running = subprocess.Popen(command)
    time.sleep(float(seconds))
    if running.poll() is None:
        print("hit", flush=True)
    cluster.remove_node(lost, allow_graceful=False)
    status = running.wait()
    if status != 0:
        status = subprocess.run(command, check=False).returncode
    cluster.shutdown()
    return status


if __name__ == "__main__":
    sys.exit(main())
