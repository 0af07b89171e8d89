package v1alpha1

// copyPointer returns a pointer to a copy of a value that an assignment copies.
func copyPointer[T any](in *T) *T {
	if in == nil {
		return nil
	}
	out := *in
	return &out
}

// copyEach returns a list with a copy of each item. The copy of nil is nil.
func copyEach[T any](in []T, copyInto func(in, out *T)) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i := range in {
		copyInto(&in[i], &out[i])
	}
	return out
}
