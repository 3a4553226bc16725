"""A made-up incident of a small shop: logs, a business database and runbooks that agree with one another."""
