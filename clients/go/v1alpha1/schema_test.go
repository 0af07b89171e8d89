package v1alpha1

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// definition is what these tests read of a schema in a CRD.
type definition struct {
	Type                 string                 `json:"type"`
	Format               string                 `json:"format"`
	Enum                 []string               `json:"enum"`
	Properties           map[string]*definition `json:"properties"`
	Required             []string               `json:"required"`
	Items                *definition            `json:"items"`
	AdditionalProperties *definition            `json:"additionalProperties"`
}

// crds reads the schemas of all CRDs, by their kinds.
func crds(t *testing.T) map[string]*definition {
	t.Helper()
	files, err := filepath.Glob("../../../crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRD: %v", err)
	}
	schemas := map[string]*definition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct{ OpenAPIV3Schema *definition }
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		schemas[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return schemas
}

var kinds = map[string]reflect.Type{
	"WorkflowExecution": reflect.TypeFor[WorkflowExecution](),
	"WorkflowSchedule":  reflect.TypeFor[WorkflowSchedule](),
}

func TestTypesHaveExactlyTheFieldsOfTheCRDs(t *testing.T) {
	schemas := crds(t)
	if len(schemas) != len(kinds) {
		t.Fatalf("%d CRDs and %d kinds", len(schemas), len(kinds))
	}
	for kind, object := range kinds {
		// The API server adds these three to every schema.
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(schemas[kind].Properties, name)
		}
		for _, difference := range compare(kind, schemas[kind], object) {
			t.Error(difference)
		}
	}
}

// compare lists the differences between a schema and a Go type.
func compare(path string, schema *definition, of reflect.Type) []string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[metav1.Time]():
		return want(path, "string date-time", schema.Type+" "+schema.Format)
	case reflect.TypeFor[Retry]():
		return compare(path, withType(schema, "object"), reflect.TypeFor[RetryPolicy]())
	}
	switch of.Kind() {
	case reflect.Struct:
		return slices.Concat(want(path, "object", schema.Type), compareFields(path, schema, of))
	case reflect.Slice:
		return slices.Concat(want(path, "array", schema.Type), compare(path+"[]", schema.Items, of.Elem()))
	case reflect.Map:
		return slices.Concat(want(path, "object", schema.Type), compare(path+"{}", schema.AdditionalProperties, of.Elem()))
	case reflect.String:
		return slices.Concat(want(path, "string", schema.Type), want(path, "", schema.Format))
	case reflect.Bool:
		return want(path, "boolean", schema.Type)
	case reflect.Int32, reflect.Int64:
		return want(path, "integer "+of.Kind().String(), schema.Type+" "+schema.Format)
	case reflect.Float64:
		return want(path, "number", schema.Type)
	}
	return []string{fmt.Sprintf("%s: the Go type %s is not known here", path, of)}
}

func compareFields(path string, schema *definition, of reflect.Type) (differences []string) {
	fields := map[string]reflect.StructField{}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			continue
		}
		fields[name] = field
		property := schema.Properties[name]
		if property == nil {
			differences = append(differences, fmt.Sprintf("%s.%s: the CRD has no such field", path, name))
			continue
		}
		if required := slices.Contains(schema.Required, name); required == strings.HasPrefix(options, "omit") {
			differences = append(differences, fmt.Sprintf("%s.%s: required %t, but tagged %q", path, name, required, options))
		}
		differences = append(differences, compare(path+"."+name, property, field.Type)...)
	}
	for name := range schema.Properties {
		if _, exists := fields[name]; !exists {
			differences = append(differences, fmt.Sprintf("%s.%s: the Go type has no such field", path, name))
		}
	}
	return differences
}

func withType(of *definition, name string) *definition {
	typed := *of
	typed.Type = name
	return &typed
}

func want(path, want, have string) []string {
	if want == have {
		return nil
	}
	return []string{fmt.Sprintf("%s: the Go type is for %q, and the CRD has %q", path, want, have)}
}

func TestADifferenceIsFound(t *testing.T) {
	of := reflect.TypeFor[Cancellation]()
	text := func(name string) *definition { return &definition{Type: name} }
	for name, test := range map[string]struct {
		schema definition
		found  string
	}{
		"a new field": {
			definition{Type: "object", Required: []string{"reason", "requestedBy"}, Properties: map[string]*definition{
				"reason": text("string"), "requestedBy": text("string"), "at": text("string"),
			}},
			"x.at: the Go type has no such field",
		},
		"a field that is gone": {
			definition{Type: "object", Required: []string{"reason"}, Properties: map[string]*definition{"reason": text("string")}},
			"x.requestedBy: the CRD has no such field",
		},
		"another type": {
			definition{Type: "object", Required: []string{"reason", "requestedBy"}, Properties: map[string]*definition{
				"reason": text("boolean"), "requestedBy": text("string"),
			}},
			`x.reason: the Go type is for "string", and the CRD has "boolean"`,
		},
		"no longer required": {
			definition{Type: "object", Required: []string{"reason"}, Properties: map[string]*definition{
				"reason": text("string"), "requestedBy": text("string"),
			}},
			`x.requestedBy: required false, but tagged ""`,
		},
	} {
		if found := compare("x", &test.schema, of); !slices.Equal(found, []string{test.found}) {
			t.Errorf("%s: found %q", name, found)
		}
	}
}

func TestNextActionsAreThoseOfTheCRD(t *testing.T) {
	status := crds(t)["WorkflowExecution"].Properties["status"]
	for _, action := range status.Properties["nextStep"].Properties["action"].Enum {
		execution := ended(PhaseFailed, &RecordedStep{Action: NextAction(action), NotBefore: &metav1.Time{}})
		execution.Status.SkipDetails = &SkipDetails{ConflictingWorkflow: &ConflictingWorkflow{Name: "holder"}}
		if step := NextStep(execution); string(step.Action) != action {
			t.Errorf("%s is read as %v", action, step)
		}
	}
}

// filled returns a value with every field set, as JSON.
func filled(t *testing.T, schema *definition) any {
	t.Helper()
	switch {
	case len(schema.Enum) > 0:
		return schema.Enum[len(schema.Enum)-1]
	case schema.Type == "array":
		return []any{filled(t, schema.Items), filled(t, schema.Items)}
	case schema.AdditionalProperties != nil:
		return map[string]any{"A": "text"}
	case schema.Properties != nil:
		object := map[string]any{}
		for name, property := range schema.Properties {
			object[name] = filled(t, property)
		}
		return object
	case schema.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case schema.Type == "string":
		return "text"
	case schema.Type == "boolean":
		return true
	}
	return 7.0
}

func TestAFullObjectIsReadWrittenAndCopiedWithoutLoss(t *testing.T) {
	for kind, schema := range crds(t) {
		full := filled(t, schema).(map[string]any)
		full["apiVersion"], full["kind"] = GroupVersion.String(), kind
		// Earlier versions of apimachinery write a time that is absent as null.
		at := "2026-01-02T03:04:05Z"
		full["metadata"] = map[string]any{"name": "one", "labels": map[string]any{"a": "b"}, "creationTimestamp": at}
		text, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		object := reflect.New(kinds[kind])
		if err := json.Unmarshal(text, object.Interface()); err != nil {
			t.Fatal(err)
		}
		copied := object.MethodByName("DeepCopy").Call(nil)[0]
		if !reflect.DeepEqual(object.Interface(), copied.Interface()) {
			t.Errorf("%s: the copy differs", kind)
		}
		for _, path := range shared("", object.Elem(), copied.Elem()) {
			t.Errorf("%s%s: the copy shares memory with the original", kind, path)
		}
		var written map[string]any
		text, err = json.Marshal(copied.Interface())
		if err == nil {
			err = json.Unmarshal(text, &written)
		}
		if err != nil || !reflect.DeepEqual(full, written) {
			t.Errorf("%s: %v\n  was     %v\n  became  %v", kind, err, full, written)
		}
	}
}

// shared lists the places at which two values point to the same memory.
func shared(path string, a, b reflect.Value) (paths []string) {
	if a.Type() == reflect.TypeFor[metav1.Time]() {
		return nil
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if a.IsNil() || a.Kind() == reflect.Slice && a.Len() == 0 {
			return nil
		}
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		return shared(path, a.Elem(), b.Elem())
	case reflect.Slice:
		for i := range a.Len() {
			paths = append(paths, shared(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))...)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			paths = append(paths, shared(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
		}
	}
	return paths
}
