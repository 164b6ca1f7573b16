"""Report pages: tables and figures as HTML, SVG and PNG."""
