package loop

// Grace is how long a loop whose context has ended may take to return.
const StopTimeout = stopTimeout
