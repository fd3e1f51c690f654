"""One class a path: a verb takes what was parsed, calls one service and returns the answer."""
