"""The Textual front end. Views talk to ``Session`` only."""
