"""The command line: thin commands over ``Session`` and the stores."""
