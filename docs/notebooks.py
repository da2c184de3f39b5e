"""Execute the notebooks of the docs again, with Jupyter: python -m docs.notebooks (needs the extra `docs`)."""

from __future__ import annotations

import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "notebooks"


def execute(file: Path) -> None:
    """Run all cells of a notebook in an empty folder, and keep what they showed."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}  # when it was executed
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(notebook, file)


if __name__ == "__main__":
    for each in sorted(FOLDER.glob("*.ipynb")):
        execute(each)
