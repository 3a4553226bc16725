"""The Lambda functions, one folder each: parse the event, call one use case, map the result."""
