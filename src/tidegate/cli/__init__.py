"""The command line: a thin face on one Gate. Data goes to stdout, talk to stderr."""
