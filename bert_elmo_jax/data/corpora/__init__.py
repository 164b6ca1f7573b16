"""Text files to prepared stores."""
