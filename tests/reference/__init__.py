"""What is written from the code, or from the API's own description: `make reference`."""
