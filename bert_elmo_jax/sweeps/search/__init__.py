"""Searches over config fields: trials with drawn values, at random or guided by earlier trials."""
