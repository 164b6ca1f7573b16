"""Executes a notebook as it is: `python tests/execute_notebook.py notebooks/1_senses.ipynb [OUTPUT.ipynb]`.

It is how the outputs in `notebooks/` are made (in that folder), and how the tests run them: in a kernel of this very
Python, whatever kernels are installed elsewhere, in the current folder, with progress bars as they look at their end.
What a cell has raised is written like any other output, and told by the exit status.
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
    """Run all cells, and write the notebook with what they gave; the exit status."""
    notebook = nbformat.read(source, as_version=4)
    specs = KernelSpecManager(kernel_dirs=[])  # no folder to look in: only the kernel that comes with this Python
    with tempfile.TemporaryDirectory() as sockets:
        # Files instead of ports: nobody else can listen in, and no network is needed.
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
