package main

import (
	"os"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// trimmed returns a text without the indentation of its lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func TestThePageShowsPartsOfThisProgram(t *testing.T) {
	program := trimmed(read(t, "main.go"))
	blocks := strings.Split(read(t, "../../../../docs/remediation-orchestrator.md"), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the page has no Go")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(program, trimmed(block)) {
			t.Errorf("main.go does not have this part of the page:\n%s", block)
		}
	}
}
