package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Retry is the value of spec.retry as JSON: true, false, a number of attempts, or a RetryPolicy.
//
// Every value can be read, so that one odd object does not stop the list of all others. Policy
// reports a value that means nothing.
type Retry []byte

// RetryDefaults returns true: all defaults of a RetryPolicy apply.
func RetryDefaults() Retry {
	return Retry("true")
}

// RetryAttempts returns a number of attempts. The other fields of a RetryPolicy have their defaults.
func RetryAttempts(attempts int) Retry {
	return Retry(strconv.Itoa(attempts))
}

// RetryWith returns a policy.
func RetryWith(policy RetryPolicy) Retry {
	text, err := json.Marshal(policy)
	if err != nil {
		// Only a number that JSON does not have, such as infinity. The API server refuses this value.
		return Retry(`"no policy"`)
	}
	return text
}

// Policy returns the policy, or nil if there are no retries.
func (retry Retry) Policy() (*RetryPolicy, error) {
	text := bytes.TrimSpace(retry)
	switch string(text) {
	case "", "null", "false":
		return nil, nil
	case "true":
		return &RetryPolicy{}, nil
	}
	if attempts, err := strconv.ParseInt(string(text), 10, 32); err == nil {
		number := int32(attempts)
		return &RetryPolicy{MaxAttempts: &number}, nil
	}
	policy := new(RetryPolicy)
	if err := json.Unmarshal(text, policy); err != nil {
		return nil, fmt.Errorf("spec.retry is no policy: %w", err)
	}
	return policy, nil
}

// MarshalJSON returns the value.
func (retry Retry) MarshalJSON() ([]byte, error) {
	if len(retry) == 0 {
		return []byte("null"), nil
	}
	return retry, nil
}

// UnmarshalJSON keeps the value.
func (retry *Retry) UnmarshalJSON(text []byte) error {
	*retry = slices.Clone(text)
	return nil
}
