package v1alpha1

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestRetry(t *testing.T) {
	three := int32(3)
	for text, want := range map[string]struct {
		policy *RetryPolicy
		bad    bool
	}{
		`{}`:                           {nil, false},
		`{"retry":false}`:              {nil, false},
		`{"retry":true}`:               {&RetryPolicy{}, false},
		`{"retry":3}`:                  {&RetryPolicy{MaxAttempts: &three}, false},
		`{"retry":{"maxAttempts":3}}`:  {&RetryPolicy{MaxAttempts: &three}, false},
		`{"retry":{"initialDelay":1}}`: {nil, true},
		`{"retry":"often"}`:            {nil, true},
		`{"retry":[1]}`:                {nil, true},
	} {
		var spec struct {
			Retry Retry `json:"retry,omitempty"`
		}
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Errorf("%s stops the reading of an object: %v", text, err)
		}
		policy, err := spec.Retry.Policy()
		if (err != nil) != want.bad || !reflect.DeepEqual(policy, want.policy) {
			t.Errorf("%s: %+v, %v", text, policy, err)
		}
		if again, err := json.Marshal(spec); err != nil || string(again) != text {
			t.Errorf("%s becomes %s, %v", text, again, err)
		}
	}
}

func TestRetryIsWritten(t *testing.T) {
	delay := RetryPolicy{InitialDelay: "5s"}
	for want, retry := range map[string]Retry{
		"true": RetryDefaults(), "3": RetryAttempts(3), `{"initialDelay":"5s"}`: RetryWith(delay), "null": nil,
	} {
		if text, err := json.Marshal(retry); err != nil || string(text) != want {
			t.Errorf("%s, not %s: %v", text, want, err)
		}
	}
}
