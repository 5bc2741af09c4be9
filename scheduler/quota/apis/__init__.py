"""The APIs that declare shares: an `Adapter` (`quota/adapter.py`) in a file or two for each."""
