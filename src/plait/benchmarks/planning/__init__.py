"""How fast many queries are planned together, and whether everything they share is found. See README.md."""
