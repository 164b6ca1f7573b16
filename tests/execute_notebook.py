"""Execute a notebook unchanged: `python tests/execute_notebook.py notebooks/1_senses.ipynb [OUTPUT.ipynb]`.

This script makes the outputs in `notebooks/` (when run in that folder), and the tests use it, too. The kernel is this
Python, even if other kernels are installed, and runs in the current folder. Only the last state of progress bars is
kept. An error of a cell is written like any other output, and the exit status reports it.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError


def execute(source: str, target: str) -> int:
    """Run all cells, write the notebook with their outputs, and return the exit status."""
    notebook = nbformat.read(source, as_version=4)
    specs = KernelSpecManager(kernel_dirs=[])  # no folder to look in: only the kernel that comes with this Python
    with tempfile.TemporaryDirectory() as sockets:
        # Files instead of ports: no other process can listen in, and no network is needed.
        manager = AsyncKernelManager(kernel_spec_manager=specs, transport="ipc", ip=str(Path(sockets, "kernel")))
        client = NotebookClient(notebook, manager, timeout=1200, coalesce_streams=True, record_timing=False)
        try:
            client.execute(cleanup_kc=True)
            status = 0
        except (CellExecutionError, DeadKernelError) as error:
            print(error, file=sys.stderr)
            status = 1
    # What belongs to this machine rather than to the notebook.
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, target)
    return status


if __name__ == "__main__":
    sys.exit(execute(sys.argv[1], sys.argv[-1]))
