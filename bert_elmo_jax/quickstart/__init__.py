"""The quickstart: its runs, its task files and its page."""
