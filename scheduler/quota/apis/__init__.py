"""The sources of shares: a file or two for each API that declares them."""
