"""The quickstart: its runs, tasks, progress bar and page."""
