"""`python -m plait`, where the command is not on the path."""

from plait.cli import main

main()
