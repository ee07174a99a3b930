"""Looks at everything the program needs, says what is wrong in one line each, and names the command that mends it."""
