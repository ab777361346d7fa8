package main

import "context"

// await returns what f returns, which waits for somebody else: for a standard
// input that does not end, or a FIFO without another end. When ctx ends first, f
// is left where it is and the cause is returned.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ended := make(chan result, 1)
	go func() {
		value, err := f()
		ended <- result{value, err}
	}()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
