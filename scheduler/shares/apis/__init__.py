"""Where shares come from: a file or two for each API that declares them."""
