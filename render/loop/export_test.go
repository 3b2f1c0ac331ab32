package loop

// StopTimeout is exported for tests.
const StopTimeout = stopTimeout
