"""Reads of the session cache, one file per noun: tree, windows, tool_results, policies, pages."""
