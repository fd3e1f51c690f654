"""What the API can do, free of HTTP: each service takes a user and values, and gives wire models or domain errors."""
