"""`make sam-local`: every function in the runtime image of AWS, by the events under `events/`."""
