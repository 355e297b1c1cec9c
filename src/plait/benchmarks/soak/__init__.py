"""Does a run stay as it is for half an hour? Memory, state, batch times, and the rows at the end."""
