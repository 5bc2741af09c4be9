"""What a release consists of besides the image: wheel and sdist, lists of contents, archives for krew."""
